// LibTorch's guards of the current device, of the emulation's.
#pragma once

#include <c10/core/Device.h>

#include "tests/cuda_emulation/emulation.h"

namespace c10::cuda {

class OptionalCUDAGuard {
public:
  OptionalCUDAGuard() = default;
  ~OptionalCUDAGuard() { cuda_emulation::current_device() = before_; }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  void set_index(const DeviceIndex index) {
    cuda_emulation::current_device() = index; // NOLINT(bugprone-signed-char-misuse): a number
  }

private:
  int before_ = cuda_emulation::current_device();
};

class CUDAGuard : public OptionalCUDAGuard {
public:
  explicit CUDAGuard(const Device device) { set_index(device.index()); }
};

} // namespace c10::cuda
