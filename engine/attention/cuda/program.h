// Programs of one block of threads, compiled for the GPU and for the host. A program is a sequence of
// block.each(phase): every thread runs the phase, then all wait for each other. What a thread keeps from
// phase to phase is a Block::Local, and block.sum_of_warp(local) gives every thread its warp's sum. So the
// very programs of the GPU run on the host as well, where the tests hold them to the definition
// (tests/engine/attention/cuda_*_test.cpp).
#pragma once

// What both the GPU and the host run, what a block runs, and a loop whose results lie in registers.
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

constexpr int block_threads = 256;
constexpr int warp_threads = 32;

} // namespace hydrascope::cuda
