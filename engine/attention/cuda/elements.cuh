// The types that tensors come in, read and written as float32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

} // namespace hydrascope::cuda
