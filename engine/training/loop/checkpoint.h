// Everything a training needs to go on: parameters, the optimizer's moments, and how far it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

struct Checkpoint {
  std::string configuration; // what must be the same to go on; told to the user if it is not
  std::int64_t step = 0;     // steps done, over all epochs
  std::vector<double> sums;  // over the epoch's steps so far, of what the task shows
  double epoch_loss = 0;     // mean of the last whole epoch
  HeldOut before;            // before the first step
  HeldOut best;              // of best_parameters
  bool has_best = false;
  int worse = 0; // epochs since a validation was better
  std::vector<std::pair<std::int64_t, double>> curve;
  std::vector<HeldOut> validations;
  std::vector<std::string> notes;
  NamedTensors parameters;
  NamedTensors best_parameters; // empty before the first validation; of heads with losses of their own never
  NamedTensors moments;
};

// Writes beside the output, renamed when complete. Throws Error (disk full: the former one stays).
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws Error (missing), ForeignFile, BrokenFile, UsageError (made with another configuration).
Checkpoint load_checkpoint(const std::filesystem::path& file, const std::string& configuration);

// True once in so many seconds; 0 seconds: always.
class Interval {
public:
  explicit Interval(double seconds) : seconds_(seconds) {}
  bool due();
  void reset() { last_ = std::chrono::steady_clock::now(); }

private:
  double seconds_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Writes named tensors (any dtype safetensors knows, any device) with metadata.
void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata);

} // namespace hydrascope::training
