// The part of CUDA that the kernels use, for a C++ compiler: qualifiers, threads, and the run-time library
// over the emulation.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "tests/cuda_emulation/emulation.h"

#define __global__
#define __device__
#define __host__
#define __shared__
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

using cuda_emulation::dim3;

#define threadIdx (cuda_emulation::current_thread().thread)
#define blockIdx (cuda_emulation::current_thread().block)
#define gridDim (cuda_emulation::current_thread().grid)
#define blockDim (cuda_emulation::current_thread().block_size)

// Not inlined, so that the return address tells one barrier of the source from another.
[[gnu::noinline]] inline void __syncthreads() {
  cuda_emulation::synchronise_block(__builtin_return_address(0));
}
inline void __syncwarp() { cuda_emulation::synchronise_warp(); }
inline void __threadfence() {} // blocks run one after another

template <typename T>
T __shfl_xor_sync(const unsigned mask, const T value, const int offset) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  if (mask != 0xffffffffu) cuda_emulation::fail("__shfl_xor_sync: only of whole warps");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = cuda_emulation::exchange_in_warp(bits, offset);
  T result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline int __any_sync(const unsigned mask, const bool one) {
  bool any = one;
  for (int offset = 1; offset < cuda_emulation::warp_size; offset *= 2)
    any = __shfl_xor_sync(mask, any, offset) || any;
  return any ? 1 : 0;
}
inline float __fdividef(const float x, const float by) { return x / by; }

template <typename T>
T atomicAdd(T* const to, const T value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

using cudaStream_t = void*;
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchFailure = 719,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };

inline cudaError_t cudaGetLastError() {
  return static_cast<cudaError_t>(std::exchange(cuda_emulation::last_error(), 0));
}
// Of a launch failure, what the emulation found.
inline const char* cudaGetErrorString(const cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorLaunchFailure: return cuda_emulation::failure().c_str();
  }
  return "unknown error";
}
inline cudaError_t cudaGetDevice(int* const device) {
  *device = cuda_emulation::current_device();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* const value, cudaDeviceAttr, const int device) {
  *value = cuda_emulation::device(device).max_shared_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* const to, const int value, const std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* const kernel, cudaFuncAttribute, const int bytes) {
  const bool allowed = cuda_emulation::allow_shared_bytes(reinterpret_cast<const void*>(kernel), bytes);
  return allowed ? cudaSuccess : cudaErrorInvalidValue;
}

// Runs the whole grid before it returns.
template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*const kernel)(Parameters...), const dim3 grid, const dim3 block,
                             void** const arguments, const std::size_t shared_bytes, cudaStream_t) {
  const auto call = [&]<std::size_t... index>(std::index_sequence<index...>) {
    const std::tuple<Parameters...> copies(*static_cast<const Parameters*>(arguments[index])...);
    return cuda_emulation::launch(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
                                  [&] { std::apply(kernel, copies); });
  };
  const auto error = static_cast<cudaError_t>(call(std::index_sequence_for<Parameters...>()));
  cuda_emulation::last_error() = error;
  return error;
}
