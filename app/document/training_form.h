// The Training panel's form. Kept with the settings and not undoable, because it does not affect what is
// shown; the options of a finished training are in the metadata of its adapter.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/document.h"
#include "engine/training/loop/options.h"

namespace hydrascope::app {

// The values of the form's fields, by the keys of the options, for one kind of training on one kind of data.
using TrainingPlan = OptionValues;

// What the document's model reads.
TrainingData training_data(const Document& document);

struct TrainingForm {
  TrainingForm();

  TrainingKind kind = TrainingKind::distill;
  KernelSpec kernel;       // the target of distillation
  bool show_live = true;   // whether the panels show the adapter during training
  double live_seconds = 4; // how often they update it
  std::array<TrainingPlan, 6> plans;

  // An empty "data" of a distillation stands for the bundled data.
  TrainingPlan& plan(TrainingKind of, TrainingData data);
  const TrainingPlan& plan(TrainingKind of, TrainingData data) const;
  TrainingPlan& plan(TrainingKind of, InputKind input) { return plan(of, TrainingData{input}); }
  const TrainingPlan& plan(TrainingKind of, InputKind input) const { return plan(of, TrainingData{input}); }

  bool operator==(const TrainingForm&) const = default;
};

// What distillation trains on without data of the user: the example pictures or a file of sentences.
std::filesystem::path bundled_data(InputKind input);
std::string bundled_data_text(InputKind input); // "300 bundled sentences"
bool uses_bundled_data(const TrainingPlan& plan, TrainingKind kind);

// The values that a new form has: the papers', but for those that suit so small a set as the bundled data.
TrainingPlan bundled_plan(TrainingKind kind, TrainingData data);
inline TrainingPlan bundled_plan(TrainingKind kind, InputKind input) {
  return bundled_plan(kind, TrainingData{input});
}
// Sets the data; empty: the bundled ones. Values that suit the former data alone are changed with them,
// unless the user has set others.
void choose_data(TrainingPlan& plan, TrainingKind kind, InputKind input, const std::string& data);

// The kernels that distillation can train.
const std::vector<std::string>& distillable_kernels();

std::string training_text(const TrainingForm& form); // as JSON
// The inverse of training_text; the defaults if the text cannot be read.
TrainingForm parse_training(std::string_view text);

// The adapter to be written: the form's file, or an unused name made of model, kernel and data in the user's
// folder for adapters.
std::filesystem::path training_output(const Document& document, const TrainingForm& form);

// Why the form cannot be trained; empty if it can. Does not look at the user's data.
std::string why_not_trained(const Document& document, const TrainingForm& form);

// One line for before the start: which layers are trained, and what happens to what is shown.
std::string training_effect(const Document& document, const TrainingForm& form);

// The request for the current scene and its edited side. Throws UsageError for an invalid field.
TrainingRequest training_request(const Document& document, const TrainingForm& form);

// The command line equivalent to a request, for the adapter's metadata. `model`: the value of --model.
// Includes values that are defaults, because defaults may change.
std::string training_command(const TrainingRequest& request, const std::string& model);

} // namespace hydrascope::app
