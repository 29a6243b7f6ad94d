// Programs of one block of threads, compiled for the GPU and for the host. A program is a sequence of
// block.each(phase): every thread runs the phase, then all threads synchronise; after block.alone(phase) they
// do not. A value that a thread keeps between phases is a Block::Local; block.sum_of_warp(local) replaces it
// by the sum over the thread's warp. block.is_last(counter, count, shared) is true in the last of `count`
// blocks.
// The tests run the same programs on the host and compare them with the definition
// (tests/engine/attention/cuda_*_test.cpp). No LibTorch and no CUDA headers.
#pragma once

#include <cmath>
#include <cstdint>

// Marks functions of both the GPU and the host, functions of a block, loops over registers, and loops that
// are to remain loops.
#ifdef __CUDACC__
  #define HYDRASCOPE_BOTH __host__ __device__
  #define HYDRASCOPE_BLOCK __device__
  #define HYDRASCOPE_UNROLL _Pragma("unroll")
  #define HYDRASCOPE_KEEP_LOOP _Pragma("unroll 1")
#else
  #define HYDRASCOPE_BOTH
  #define HYDRASCOPE_BLOCK
  #define HYDRASCOPE_UNROLL
  #define HYDRASCOPE_KEEP_LOOP
#endif

namespace hydrascope::cuda {

enum class Element { float32, float16, bfloat16 }; // of tensors on the device

// The larger, or NaN if one is: fmaxf() would drop it, and a NaN among the inputs has to reach the output.
HYDRASCOPE_BOTH inline float larger(const float a, const float b) {
#ifdef __CUDA_ARCH__
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a > b || a != a ? a : b;
#endif
}

// e^x of x ≤ 0, or of little more, as good as a sum of such numbers needs: to 3·10⁻⁷ of the largest, by the
// instruction for 2^x.
HYDRASCOPE_BOTH inline float exponential(const float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
  return result;
#else
  return std::exp(x);
#endif
}

// Whether loads and stores of 16 bytes may begin there.
HYDRASCOPE_BOTH inline bool at_16_bytes(const void* const data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

// Consecutive elements that one load or store takes, of at most 16 bytes.
template <typename T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Piece {
  T at[count];
};

constexpr int block_threads = 256;
constexpr int warp_threads = 32;

} // namespace hydrascope::cuda
