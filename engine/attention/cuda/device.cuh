// What the kernels share: a block of the GPU's threads for the programs of program.h, element types read and
// written as float32, launches and their errors. No syntax of nvcc's own: the tests compile the kernels for
// the CPU (tests/cuda_emulation).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "engine/attention/cuda/program.h"

// float* name: the block's dynamic shared memory.
#ifdef __CUDACC__
  #define HYDRASCOPE_SHARED_MEMORY(name) extern __shared__ __align__(128) float name[]
#else
  #define HYDRASCOPE_SHARED_MEMORY(name) float* const name = cuda_emulation::shared_memory()
#endif

namespace hydrascope::cuda {

inline __device__ float to_float(float x) { return x; }
inline __device__ float to_float(__half x) { return __half2float(x); }
inline __device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ T from_float(float x);
template <>
inline __device__ float from_float<float>(float x) {
  return x;
}
template <>
inline __device__ __half from_float<__half>(float x) {
  return __float2half(x);
}
template <>
inline __device__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16(x);
}

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
  // All threads of the block must call this together.
  __device__ void sum_of_warp(Local<float>& local) {
    for (int offset = warp_threads / 2; offset > 0; offset /= 2)
      local.value += __shfl_xor_sync(0xffffffffu, local.value, offset);
  }
};

template <typename T>
struct Type {
  using type = T;
};

// Launches a kernel with blocks of block_threads threads. Returns CUDA's error and clears it, so that
// LibTorch's next launch does not report it.
template <typename... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), const dim3 grid, const std::size_t shared_bytes,
                   cudaStream_t stream, const typename Type<Parameters>::type&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  const cudaError_t outcome =
      cudaLaunchKernel(kernel, grid, dim3(block_threads), pointers, shared_bytes, stream);
  cudaGetLastError();
  return outcome;
}

// Null, or the error's message.
inline const char* message_of(const cudaError_t outcome) {
  return outcome == cudaSuccess ? nullptr : cudaGetErrorString(outcome);
}

} // namespace hydrascope::cuda
