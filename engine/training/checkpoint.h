// Everything a training needs to go on: parameters, the optimizer's moments, and how far it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/optimizer.h"

namespace hydrascope::training {

struct Checkpoint {
  std::string configuration;        // what must be the same to go on; told to the user if it is not
  std::int64_t step = 0;            // steps done, over all epochs
  std::int64_t updates = 0;         // updates of the optimizer
  double epoch_loss = 0;            // sum of the epoch's losses so far
  std::vector<double> epoch_layers; // distillation: the same per layer
  double best = 0;                  // best validation so far
  std::int64_t best_step = -1;
  double initial_divergence = 0;
  std::vector<std::pair<std::int64_t, double>> curve;
  std::vector<std::string> notes;
  NamedTensors parameters;
  NamedTensors best_parameters; // may be empty
  NamedTensors moments;
};

std::filesystem::path checkpoint_path(const std::filesystem::path& output);

// Writes beside the output, renamed when complete. Throws Error (disk full: the former one stays).
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws Error (missing), ForeignFile, BrokenFile, UsageError (made with another configuration).
Checkpoint load_checkpoint(const std::filesystem::path& file, const std::string& configuration);

// True once a minute.
class CheckpointClock {
public:
  bool due();

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Writes named tensors (any dtype safetensors knows, any device) with metadata.
void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata);

} // namespace hydrascope::training
