// The options that every training command has, and what its end tells.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include <CLI/CLI.hpp>

#include "engine/training/distributed/process_group.h"
#include "engine/training/loop/options.h"

namespace hydrascope::app {

// Those of the table that the training has, with the values as defaults; the values must outlive the parse.
void add_training_options(CLI::App& command, TrainingKind kind, OptionValues& values);

// One of several processes that torchrun, srun or mpirun started, or one alone. Rank 0 alone shows how far it
// is and tells the outcome.
class TogetherTraining {
public:
  // Joins the others and gives the settings their group.
  explicit TogetherTraining(TrainingSettings& settings);
  // The curve is written where the settings say, the outcome printed. Throws what the training throws.
  void run(const std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)>& training,
           bool json) const;

private:
  training::ProcessGroup group_;
  const TrainingSettings& settings_;
};

} // namespace hydrascope::app
