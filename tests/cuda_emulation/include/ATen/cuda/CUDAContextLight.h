// LibTorch's properties of devices, of the emulation's.
#pragma once

#include <c10/core/Device.h>

#include "tests/cuda_emulation/emulation.h"

namespace at::cuda {

inline const cuda_emulation::Device* getDeviceProperties(const c10::DeviceIndex index) {
  return &cuda_emulation::device(index);
}
inline const cuda_emulation::Device* getCurrentDeviceProperties() {
  return &cuda_emulation::device(cuda_emulation::current_device());
}

} // namespace at::cuda
