// What the Training panel's form holds: a training to be. It is kept with the settings and undone by nothing,
// as it says nothing of what is shown; what a training was told is in the metadata of the adapter it wrote.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/document.h"
#include "engine/training/training.h"

namespace hydrascope::app {

enum class TrainingKind { distill, finetune };

// One kind of training on one kind of input; each keeps its own.
struct TrainingPlan {
  std::string data;       // text: files, "; " between them; images: folders
  std::string validation; // fine-tuning: the same, held out; empty: a share of the data
  int column = 0;         // of *.tsv files, from 1; 0: whole lines (fine-tuning: never 0)
  int pair_column = 0;    // of the second text; 0: there is none
  int label_column = 2;   // fine-tuning
  bool header = false;    // the first line of *.tsv files is skipped
  std::string chunk;      // distillation of plain texts, as --chunk: "512", "16-256"; empty: a line each
  int limit = 0;          // items of each file; 0: all
  std::string layers;     // fine-tuning, as --train-layers; empty: what the schedule replaces
  std::string lora;       // fine-tuning, as --lora: "rank=8,alpha=16"; empty: whole weights
  int epochs = 5, batch = 8;
  double learning_rate = 1e-2;
  bool cosine = false; // distillation: it falls to 0 along a cosine; fine-tuning always does so
  double validation_share = 0.05;
  int patience = 1; // epochs without a better validation before it stops; 0: never
  double warmup = 0.05, weight_decay = 0, label_smoothing = 0;
  double distillation_alpha = 0, distillation_tau = 3, distillation_hidden = 0; // fine-tuning
  // Of pictures that are fine-tuned on.
  int copies = 2;
  double smallest_crop = 0.35, color_jitter = 0.3, mixup = 0, patch_dropout = 0;
  bool flip = true;
  std::string output; // empty: default_output()

  bool operator==(const TrainingPlan&) const = default;
};

// With the papers' numbers: Zhang et al., The Hedgehog & the Porcupine (2024), A.3; Touvron et al., DeiT
// (2021), table 9.
TrainingPlan default_plan(TrainingKind kind, InputKind input);

struct TrainingForm {
  TrainingForm();

  TrainingKind kind = TrainingKind::distill;
  KernelSpec kernel;       // that is distilled into
  bool show_live = true;   // the panels show the adapter while it trains …
  double live_seconds = 4; // … and take up its newest state about as often
  std::array<TrainingPlan, 4> plans;

  TrainingPlan& plan(TrainingKind of, InputKind input);
  const TrainingPlan& plan(TrainingKind of, InputKind input) const;

  bool operator==(const TrainingForm&) const = default;
};

// The kernels that distillation can train.
const std::vector<std::string>& distillable_kernels();

std::string training_text(const TrainingForm& form); // as JSON
// What training_text wrote; where it cannot be understood, the defaults.
TrainingForm parse_training(std::string_view text);

// Where a training writes: the form's own file, or a name made of model, kernel and data in the user's folder
// for adapters that no finished adapter has yet.
std::filesystem::path training_output(const Document& document, const TrainingForm& form);

// Why this cannot be trained; empty if it can, as far as is seen without looking at the data.
std::string why_not_trained(const Document& document, const TrainingForm& form);

// Both take the scene that is shown, and the side of it that is edited. Throw UsageError where a text of the
// form is not what its field takes.
DistillRequest distill_request(const Document& document, const TrainingForm& form);
FinetuneRequest finetune_request(const Document& document, const TrainingForm& form);

} // namespace hydrascope::app
