// Associative recall, as `recall` and `figure recall` train it. Plain header.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/training/tasks/recall.h"

namespace hydrascope::app {

struct RecallFiles {
  std::filesystem::path results; // the list, written after each kernel; empty: none
  bool resume = false;           // keep the results in the file and continue from the checkpoint beside it
  std::string curve;             // CSV of the loss; {kernel} in its name is the kernel's; empty: none
};

// Trains the kernels with the request's settings, one after the other, with progress on standard error.
// Returns a list of {kernel, accuracy, entropy, loss, …}; the entropy of signed kernels is null. Throws
// UsageError, Error (stopped: results and a checkpoint are kept).
nlohmann::ordered_json recall_kernels(RecallRequest request, const std::vector<KernelSpec>& kernels,
                                      const RecallFiles& files = {});

} // namespace hydrascope::app
