// What a warp computes by instructions of its own (PTX ISA, "Warp-level matrix instructions"): products of
// 16 × 16 by 16 × 8 on the tensor cores, their factors from shared memory, copies into it that the warp does
// not wait for. In a compiler other than nvcc, the emulation's (tests/cuda_emulation).
//
// With g = lane / 4 and q = lane % 4, a lane holds of the left factor rows g and g + 8 at columns 2q, 2q + 1,
// 2q + 8, 2q + 9; of the right one column g at these rows; of the product rows g and g + 8 at columns 2q and
// 2q + 1. A product's columns therefore are a left factor's, two products side by side, without an exchange.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "engine/attention/cuda/device.cuh"
#ifndef __CUDACC__
  #include <warp_matrix_emulation.h>
#endif

namespace hydrascope::cuda {

using Pair = std::uint32_t; // two neighbouring elements of a half type, the first in the lower bits

// Four squares of 8 × 8: lane l passes the address, a multiple of 16 bytes, of row l % 8 of square l / 8.
// to[i] is the lane's pair of square i: row g, columns 2q and 2q + 1; transposed, these rows of column g.
template <bool transposed>
__device__ void load_squares(Pair (&to)[4], const void* const row) {
#ifdef __CUDACC__
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#else
  cuda_emulation::load_squares(to, row, transposed);
#endif
}

// sum += a · b
template <typename T>
__device__ void multiply_add(float (&sum)[4], const Pair (&a)[4], const Pair b0, const Pair b1) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  cuda_emulation::multiply_add<T>(sum, a, b0, b1);
#endif
}

// Rounds two numbers to a pair.
template <typename T>
__device__ Pair pair_of(const float first, const float second) {
#ifdef __CUDACC__
  Pair result;
  if constexpr (std::is_same_v<T, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
  return result;
#else
  return cuda_emulation::pair_of<T>(first, second);
#endif
}

// 2^x, 0 below 2^−126.
inline __device__ float power_of_two(const float x) {
#ifdef __CUDACC__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}

// Starts to copy 16 bytes into shared memory; without `there`, zeros, and `from` is not read. finish_copies()
// waits for all but the last `pending` groups of this thread's; a barrier must follow.
inline __device__ void start_copy(void* const to, const void* const from, const bool there) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  cuda_emulation::start_copy(to, from, there);
#endif
}
inline __device__ void end_group_of_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  cuda_emulation::end_group_of_copies();
#endif
}
template <int pending>
__device__ void finish_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  cuda_emulation::finish_copies(pending);
#endif
}

} // namespace hydrascope::cuda
