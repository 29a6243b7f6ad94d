// The bare attention operation on tensors in a file. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/attention/kernel_info.h"

namespace hydrascope {

struct AttendRequest {
  KernelSpec kernel;
  std::filesystem::path
      input; // safetensors: q, k, v float32 (B,H,N,d); optional mask (B,N) uint8, x (B,N,D) and the
             // kernel's parameters by name; tensors the kernel does not use are ignored
  std::filesystem::path output;   // safetensors: output (B,H,N,d), weights (B,h,R,N)
  bool weights = false;           // write weights, too
  std::vector<std::int64_t> rows; // query rows of the weights; empty: all
  bool causal = false;
  std::int64_t grid_rows =
      0; // the tokens end in a grid of patches, those before it are prefix tokens; 0: text
  std::int64_t grid_columns = 0;
};

// Reads the input, runs the kernel by its fast path and writes the output. Throws Error for files that cannot
// be read or written, tensors of the wrong shape or type, rows and grids that do not fit, and weights above 4
// GiB.
void attend_file(const AttendRequest& request);

} // namespace hydrascope
