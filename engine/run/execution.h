// What the execution options ask of the machine. Plain header.
#pragma once

#include <cstdint>
#include <string>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

// Throws Error for a device on which models do not run, UsageError for one that is not known.
void check_device(const std::string& device);

// --seed reaches kernels that draw numbers and were not given a seed of their own.
KernelSpec seeded(KernelSpec spec, std::uint64_t seed);

// Sets LibTorch's threads for the life of the object; 0 leaves them as they are.
class ThreadCount {
public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

private:
  int before_;
};

} // namespace hydrascope
