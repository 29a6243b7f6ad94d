// What this machine can do at most, measured beside what is compared with it: memory bandwidth (McCalpin's
// STREAM triad) and the rate of matrix products. Plain header.
#pragma once

#include <cstdint>
#include <string>

namespace hydrascope {

// Bytes a second of a = b + s·c in float32, its three arrays of `footprint` bytes together, each counted once
// as STREAM does; the best of several runs. On the CPU by LibTorch's current threads, by ordinary stores or
// by those past the caches, whichever are faster. Small footprints measure a cache. Throws as device_of, here
// and below.
double triad_bandwidth(std::int64_t footprint, const std::string& device = "cpu");

// Floating-point operations a second (two for each multiply-accumulate) of a product of square matrices. On
// the CPU of 1,024 rows, the best of at::matmul and of oneDNN with packed weights, on a GPU of 8,192 rows
// (float32 without TF32). Throws UsageError for a dtype but float32, bfloat16 and, on a GPU, float16.
double matrix_rate(const std::string& dtype, const std::string& device = "cpu");

struct MachineLimits {
  double bandwidth = 0;   // bytes a second, of arrays beyond the caches
  double matrix_rate = 0; // floating-point operations a second

  bool operator==(const MachineLimits&) const = default;
};
// Both, with LibTorch's current threads. Throws as matrix_rate.
MachineLimits machine_limits(const std::string& dtype);

// Threads of LibTorch and the processors this process may run on, as "2 threads on processors 0-1".
std::string threads_text();

} // namespace hydrascope
