// The options that every training command has, and what its end tells.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include <CLI/CLI.hpp>

#include "engine/training/process_group.h"
#include "engine/training/training.h"

namespace hydrascope::app {

// --epochs, --batch, --learning-rate, … with the settings' own values as defaults; --output, --resume,
// --curve.
void add_training_options(CLI::App& command, TrainingSettings& settings, std::string& curve);

// One of several processes that torchrun, srun or mpirun started, or one alone. Rank 0 alone shows how far it
// is and tells the outcome.
class TogetherTraining {
public:
  // Joins the others and gives the settings their group.
  explicit TogetherTraining(TrainingSettings& settings);
  TrainingOutcome run(
      const std::function<TrainingOutcome(const TrainingObserver&, const std::stop_token&)>& training) const;
  bool tells() const { return group_.rank() == 0; }

private:
  training::ProcessGroup group_;
};

} // namespace hydrascope::app
