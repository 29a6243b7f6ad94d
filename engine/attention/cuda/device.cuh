// What the kernels share: a block of the GPU's threads for the programs of program.h, element types read and
// written as float32, launches and their errors. No syntax of nvcc's own: the tests compile the kernels for
// the CPU (tests/cuda_emulation).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

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

// As one store into global memory: nvcc splits the assignment of four floats.
template <typename T, int count>
__device__ void store(T* const to, const Piece<T, count>& piece) {
#ifdef __CUDACC__
  if constexpr (sizeof(piece) == 16) {
    unsigned bits[4];
    memcpy(bits, &piece, sizeof bits);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bits[0]), "r"(bits[1]),
                 "r"(bits[2]), "r"(bits[3])
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<Piece<T, count>*>(to) = piece;
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
  // Runs the phase without a barrier; other threads may not see its writes.
  template <typename Phase>
  __device__ void alone(const Phase& phase) {
    phase(static_cast<int>(threadIdx.x));
  }
  // All threads of the block must call these together.
  __device__ void sum_of_warp(Local<float>& local) {
    for (int offset = warp_threads / 2; offset > 0; offset /= 2)
      local.value += __shfl_xor_sync(0xffffffffu, local.value, offset);
  }
  // Counts the blocks that have called; true in the last of `count`, which then sees what the others wrote.
  __device__ bool is_last(unsigned* const counter, const unsigned count, float* const shared) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) shared[0] = atomicAdd(counter, 1u) + 1 == count ? 1.0f : 0.0f;
    __syncthreads();
    const bool last = shared[0] != 0;
    __syncthreads(); // before shared memory is overwritten
    __threadfence();
    return last;
  }
};

template <typename T>
struct Type {
  using type = T;
};

// Launches a kernel with blocks of that many threads. Returns CUDA's error and clears it, so that LibTorch's
// next launch does not report it.
template <typename... Parameters>
cudaError_t launch_of(void (*kernel)(Parameters...), const dim3 grid, const int threads,
                      const std::size_t shared_bytes, cudaStream_t stream,
                      const typename Type<Parameters>::type&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  const cudaError_t outcome =
      cudaLaunchKernel(kernel, grid, dim3(static_cast<unsigned>(threads)), pointers, shared_bytes, stream);
  cudaGetLastError();
  return outcome;
}
// With blocks of block_threads threads.
template <typename... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), const dim3 grid, const std::size_t shared_bytes,
                   cudaStream_t stream, const typename Type<Parameters>::type&... arguments) {
  return launch_of(kernel, grid, block_threads, shared_bytes, stream, arguments...);
}

// Null, or the error's message; clears it, so that errors of other calls than launches do not stay either.
inline const char* message_of(const cudaError_t outcome) {
  if (outcome == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(outcome);
}

} // namespace hydrascope::cuda
