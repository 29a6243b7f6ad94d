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
// --curve. `output_needed`: the command makes nothing without a file to write.
void add_training_options(CLI::App& command, TrainingSettings& settings, std::string& curve,
                          bool output_needed = true);

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

// "8-9,10-11.attention,head" → which parameters to train. Throws UsageError.
TrainedParts parse_trained_parts(const std::string& text);

// "512" → {0, 512}, "16-256" → {16, 256}; empty: {0, 0}. Throws UsageError.
struct ChunkLengths {
  int least = 0, most = 0;
};
ChunkLengths parse_chunk_lengths(const std::string& text);

} // namespace hydrascope::app
