// What `recall` and `figure recall` share: training kernels one after the other, and their results as JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/training/tasks/recall.h"

namespace hydrascope::app {

// {kernel, accuracy, entropy, loss, …}; the entropy of signed kernels is null.
nlohmann::ordered_json recall_json(const KernelSpec& kernel, const RecallOutcome& outcome);

struct RecallFiles {
  std::filesystem::path results; // the list, written after each kernel; empty: none
  bool resume = false;           // take over what it holds, and go on from the checkpoint beside it
  std::string curve;             // CSV of the loss; {kernel} in its name stands for the kernel; empty: none
};

// Trains the kernels with the request's settings, with progress on standard error: the list of their results.
// Throws UsageError, Error (stopped: results and a checkpoint are kept).
nlohmann::ordered_json recall_kernels(RecallRequest request, const std::vector<KernelSpec>& kernels,
                                      const RecallFiles& files = {});

} // namespace hydrascope::app
