// The attention operation alone, on tensors in a file. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

struct AttendRequest {
  KernelSpec kernel;
  std::string dtype = "float32"; // q, k, v and x are rounded to it; results are written as float32
  std::string device = "auto";   // auto | cpu | cuda | cuda:i
  // safetensors: q, k, v float32 (B,H,N,d), k and v also of key/value heads whose number divides H; optional
  // mask (B,N) uint8, x (B,N,D) and the kernel's parameters by name, float32; tensors the kernel does not use
  // are ignored.
  std::filesystem::path input;
  std::filesystem::path output;   // safetensors: output (B,H,N,d), weights (B,h,R,N), drawn omega (m,d)
  bool weights = false;           // also write the weights
  std::vector<std::int64_t> rows; // query rows of the weights; empty: all
  bool causal = false;
  // The grid of patches that the tokens end in, after the prefix tokens; 0: text.
  std::int64_t grid_rows = 0, grid_columns = 0;
};

struct AttendReport {
  std::string path; // the path that ran
  double seconds = 0;
  std::int64_t zero_denominators = 0; // rows set to zero because their normaliser was 0
  std::optional<double> check;        // largest |weights × V − output| over the rows of the weights
  std::int64_t checked_rows = 0;
};

// Reads the input, runs the kernel by its planned path and writes the output. Throws Error for files that
// cannot be read or written, tensors of the wrong shape or type, NaN at real tokens or in parameters, results
// that are not finite, invalid rows and grids, unavailable devices, and weights above 4 GiB.
AttendReport attend_file(const AttendRequest& request);

} // namespace hydrascope
