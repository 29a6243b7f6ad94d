// A block of the GPU's threads, as the programs of program.h take it, and what CUDA says of a launch.
#pragma once

#include <cuda_runtime.h>

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

// Null, or what went wrong, which LibTorch's next launch is then not to find.
inline const char* message_of(const cudaError_t outcome) {
  if (outcome == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(outcome);
}

} // namespace hydrascope::cuda
