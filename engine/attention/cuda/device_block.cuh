// A block of the GPU's threads, as the programs of program.h take it.
#pragma once

#include "engine/attention/cuda/program.h"

namespace hydrascope::cuda {

struct DeviceBlock {
  template <typename T>
  struct Local {
    T value;
    __device__ explicit Local(const T& initial) : value(initial) {}
    __device__ T& operator[](int) { return value; }
  };
  template <typename Phase>
  __device__ void each(const Phase& phase) {
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  // All threads of the block come here together.
  __device__ void sum_of_warp(Local<float>& local) {
    for (int offset = warp_threads / 2; offset > 0; offset /= 2)
      local.value += __shfl_xor_sync(0xffffffffu, local.value, offset);
  }
};

} // namespace hydrascope::cuda
