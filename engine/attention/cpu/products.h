// Small matrix products out of registers, for the processor that HYDRASCOPE_CPU names: C += A·B with A's
// entries anywhere, B's and C's rows whole lanes. A's blocks and B's are meant to lie in the first two
// caches.
#pragma once

#include "engine/attention/cpu/lanes.h"

#ifdef __AVX512BF16__
  #include <immintrin.h>
#endif

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Registers have no index: loops over them are to be written out.
#define HYDRASCOPE_UNROLL _Pragma("GCC unroll 8")

// Rows of A are taken four at a time; this many lanes of C's row are kept in registers beside them.
constexpr std::int64_t rows_at_once = 4;
#ifdef __AVX512F__
constexpr std::int64_t lanes_at_once = 4;
#else
constexpr std::int64_t lanes_at_once = 1;
#endif

// Entry (i,k) of A lies at data[i·row + k·column].
struct Left {
  const float* data;
  std::int64_t row, column;
};

template <std::int64_t lanes>
HYDRASCOPE_INLINE void add_tile(const Left& a, const float* b, const std::int64_t depth,
                                const std::int64_t stride, float* c) {
  Lanes sum[rows_at_once][lanes];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < lanes; ++l) sum[i][l] = load(c + i * stride + l * lane_count);
  for (std::int64_t k = 0; k < depth; ++k) {
    Lanes row[lanes];
    HYDRASCOPE_UNROLL
    for (std::int64_t l = 0; l < lanes; ++l) row[l] = load(b + k * stride + l * lane_count);
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < rows_at_once; ++i) {
      const Lanes factor = all(a.data[i * a.row + k * a.column]);
      HYDRASCOPE_UNROLL
      for (std::int64_t l = 0; l < lanes; ++l) sum[i][l] += factor * row[l];
    }
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < lanes; ++l) store(c + i * stride + l * lane_count, sum[i][l]);
}

#ifdef __AVX512BF16__

// Two neighbours along the depth side by side, as vdpbf16ps takes them: 2·(k/2·width + f) + k%2.
using Pair = std::uint32_t;

HYDRASCOPE_INLINE __m512i pairs_of(const Lanes& even, const Lanes& odd) {
  // The instruction puts its second operand's sixteen numbers below its first's.
  const __m512i both = __builtin_bit_cast(
      __m512i, _mm512_cvtne2ps_pbh(__builtin_bit_cast(__m512, odd), __builtin_bit_cast(__m512, even)));
  alignas(64) static constexpr std::uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                          21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                          11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(order), both);
}

// Rows of floats (depth, width) as pairs (depth/2, width). depth: even.
HYDRASCOPE_INLINE void to_pairs(const float* from, const std::int64_t depth, const std::int64_t width,
                                Pair* to) {
  for (std::int64_t k = 0; k < depth; k += 2)
    for (std::int64_t f = 0; f < width; f += lane_count)
      _mm512_storeu_si512(to + k / 2 * width + f,
                          pairs_of(load(from + k * width + f), load(from + (k + 1) * width + f)));
}

// Entries (i,2k) and (i,2k+1) of A at data[i·row + k·column].
struct LeftPairs {
  const Pair* data;
  std::int64_t row, column;
};

template <std::int64_t lanes>
HYDRASCOPE_INLINE void add_tile(const LeftPairs& a, const Pair* b, const std::int64_t depth,
                                const std::int64_t stride, float* c) {
  __m512 sum[rows_at_once][lanes];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < lanes; ++l) sum[i][l] = _mm512_loadu_ps(c + i * stride + l * lane_count);
  for (std::int64_t k = 0; k < depth / 2; ++k) {
    __m512bh row[lanes];
    HYDRASCOPE_UNROLL
    for (std::int64_t l = 0; l < lanes; ++l)
      row[l] = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(b + k * stride + l * lane_count));
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < rows_at_once; ++i) {
      const auto factor =
          __builtin_bit_cast(__m512bh, _mm512_set1_epi32(static_cast<int>(a.data[i * a.row + k * a.column])));
      HYDRASCOPE_UNROLL
      for (std::int64_t l = 0; l < lanes; ++l) sum[i][l] = _mm512_dpbf16_ps(sum[i][l], factor, row[l]);
    }
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < lanes; ++l) _mm512_storeu_ps(c + i * stride + l * lane_count, sum[i][l]);
}

#endif

// C (rows, stride) += A (rows, depth) · B (depth, stride). rows: a multiple of rows_at_once; stride: of
// lane_count.
template <typename LeftSide, typename Entry>
HYDRASCOPE_INLINE void add_product(const LeftSide& a, const Entry* b, const std::int64_t rows,
                                   const std::int64_t depth, const std::int64_t stride, float* c) {
  for (std::int64_t i = 0; i < rows; i += rows_at_once) {
    const LeftSide own{a.data + i * a.row, a.row, a.column};
    float* const to = c + i * stride;
    std::int64_t f = 0;
    for (; f + lanes_at_once * lane_count <= stride; f += lanes_at_once * lane_count)
      add_tile<lanes_at_once>(own, b + f, depth, stride, to + f);
    for (; f < stride; f += lane_count) add_tile<1>(own, b + f, depth, stride, to + f);
  }
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
