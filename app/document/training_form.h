// What the Training panel's form holds: a training to be. It is kept with the settings and undone by nothing,
// as it says nothing of what is shown; what a training was told is in the metadata of the adapter it wrote.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/document.h"
#include "engine/training/loop/options.h"

namespace hydrascope::app {

// What the form's fields hold, by the keys of the options: one kind of training on one kind of input; each
// keeps its own.
using TrainingPlan = OptionValues;

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

// What the form says of the scene that is shown, and of the side of it that is edited. Throws UsageError
// where a text of the form is not what its field takes.
TrainingRequest training_request(const Document& document, const TrainingForm& form);

} // namespace hydrascope::app
