// Programs of one block of threads, compiled for the GPU and for the host. A program is a sequence of
// block.each(phase): every thread runs the phase, then all threads synchronise. A value that a thread keeps
// between phases is a Block::Local; block.sum_of_warp(local) replaces it by the sum over the thread's warp.
// The tests run the same programs on the host and compare them with the definition
// (tests/engine/attention/cuda_*_test.cpp). No LibTorch and no CUDA headers.
#pragma once

// Marks functions of both the GPU and the host, functions of a block, and loops over registers.
#ifdef __CUDACC__
  #define HYDRASCOPE_BOTH __host__ __device__
  #define HYDRASCOPE_BLOCK __device__
  #define HYDRASCOPE_UNROLL _Pragma("unroll")
#else
  #define HYDRASCOPE_BOTH
  #define HYDRASCOPE_BLOCK
  #define HYDRASCOPE_UNROLL
#endif

namespace hydrascope::cuda {

enum class Element { float32, float16, bfloat16 }; // of tensors on the device

// The larger, or NaN if one is: fmaxf() would drop it, and a NaN among the inputs has to reach the output.
HYDRASCOPE_BOTH inline float larger(const float a, const float b) { return a > b || a != a ? a : b; }

constexpr int block_threads = 256;
constexpr int warp_threads = 32;

} // namespace hydrascope::cuda
