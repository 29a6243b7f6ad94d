// The files that a training writes: checkpoints, with everything it needs to continue, and adapters, with
// what it changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/model_info.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// ---- Checkpoints ----

// By what the loss is multiplied before it is differentiated.
struct LossScale {
  double factor = 0;      // 0: not yet
  std::int64_t steps = 0; // since it changed
};

struct Checkpoint {
  std::string configuration; // what a resumed run must have in common, in words
  std::int64_t step = 0;     // steps done, over all epochs
  std::vector<double> sums;  // of StepLoss::shown over the epoch's steps so far
  double epoch_loss = 0;     // mean of the last whole epoch
  HeldOut before;            // before the first step
  HeldOut best;              // of best_parameters
  bool has_best = false;
  int worse = 0;               // epochs since a validation was better
  bool validation_due = false; // of this state: it was stopped before it was validated
  LossScale loss_scale;
  std::vector<std::pair<std::int64_t, double>> curve;
  std::vector<HeldOut> validations;
  std::vector<std::string> notes;
  NamedTensors parameters;
  NamedTensors best_parameters; // empty before the first validation
  NamedTensors moments;
};

// Writes the file under a temporary name and renames it when complete. Throws Error (disk full: the previous
// file stays).
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws Error (missing), ForeignFile, BrokenFile, UsageError (made with another configuration).
Checkpoint load_checkpoint(const std::filesystem::path& file, const std::string& configuration);

// due() is true once per interval; always if that is 0.
class Interval {
public:
  explicit Interval(double seconds) : seconds_(seconds) {}
  bool due();
  void reset() { last_ = std::chrono::steady_clock::now(); }

private:
  double seconds_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Writes named tensors (of any dtype that safetensors has, on any device) with metadata.
void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata);

// ---- Adapters: safetensors in float16 with the metadata that read_adapter_info reads ----

// As in AdapterInfo.
struct AdapterBase {
  std::string hash; // AdapterInfo::base
  std::vector<std::string> over = {};
};

struct AdapterRecord {
  std::string role; // "tail", "schedule", "maps"
  AdapterBase base;
  std::vector<AdapterInfo::Layer> layers;
  int image_size = 0;
  std::int64_t tokens = 0;
  std::vector<AdapterInfo::Class> classes;
  std::string data;      // file names, no paths
  std::string data_hash; // data_hash.h; empty: no data of a user
  std::int64_t steps = 0;
  double loss = 0;
  std::string accuracy;      // in words: "held-out top-1 0.771 of 2850"; or the held-out KL
  double low_rank_alpha = 0; // of the factors among the parameters; 0: there are none
  // The classifier among the parameters predicts a number: label = mean + deviation · output; 0: it does not.
  double label_mean = 0, label_deviation = 0;
  std::string command;
};

// Writes the parameters in float16 with the record and the program's version as metadata. Throws Error (disk
// full, no permission).
AdapterInfo write_adapter(const std::filesystem::path& file, const NamedTensors& parameters,
                          const AdapterRecord& record);

// The command line that trains the adapter from the start: without --resume, and with every path cut to its
// last part, so that the file contains no folders of the machine.
std::string shared_command(const std::string& whole);

} // namespace hydrascope::training
