// Small matrix products in registers, for the processor that HYDRASCOPE_CPU names: C += A·B with A of any
// strides, the rows of B and C padded to whole lanes. Blocks of A and B should fit the first two caches.
#pragma once

#include "engine/attention/simd/lanes.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Laness of a row of C that are kept for each of the rows_at_once rows of A.
constexpr std::int64_t registers_at_once = lane_count == most_lanes ? 4 : 2;

// The factors of a product: floats, or pairs of bfloat16 numbers.
HYDRASCOPE_INLINE Lanes factors(const float* from) { return load(from); }
HYDRASCOPE_INLINE Lanes factors(const float from) { return from - Lanes{}; }
HYDRASCOPE_INLINE void add_products(Lanes& sum, const Lanes& a, const Lanes& b) { sum += a * b; }

#ifdef __AVX512BF16__

// Two neighbours along the depth side by side, as vdpbf16ps expects them: 2·(k/2·width + f) + k%2.
using Pair = std::uint32_t;

HYDRASCOPE_INLINE __m512i pairs_of(const Lanes& even, const Lanes& odd) {
  // The instruction places its second operand's sixteen numbers below its first's.
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

HYDRASCOPE_INLINE __m512bh factors(const Pair* from) {
  return __builtin_bit_cast(__m512bh, _mm512_loadu_si512(from));
}
HYDRASCOPE_INLINE __m512bh factors(const Pair from) {
  return __builtin_bit_cast(__m512bh, _mm512_set1_epi32(static_cast<int>(from)));
}
HYDRASCOPE_INLINE void add_products(Lanes& sum, const __m512bh& a, const __m512bh& b) {
  sum = __builtin_bit_cast(Lanes, _mm512_dpbf16_ps(__builtin_bit_cast(__m512, sum), a, b));
}

#endif

// The first halves of two registers, number by number, and the second.
HYDRASCOPE_INLINE Lanes alternate_first(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined __AVX__
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
HYDRASCOPE_INLINE Lanes alternate_second(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined __AVX__
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// lane_count rows of as many floats, `from` apart by from_stride, side by side: to[f·to_stride + row].
HYDRASCOPE_INLINE void transpose_tile(const float* from, const std::int64_t from_stride, float* to,
                                      const std::int64_t to_stride) {
  Lanes rows[lane_count], other[lane_count];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < lane_count; ++i) rows[i] = load(from + i * from_stride);
  // Each perfect shuffle of all numbers moves a bit of the column's number to the row's.
  HYDRASCOPE_UNROLL
  for (std::int64_t bit = 1; bit < lane_count; bit *= 2) {
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < lane_count / 2; ++i) {
      other[2 * i] = alternate_first(rows[i], rows[i + lane_count / 2]);
      other[2 * i + 1] = alternate_second(rows[i], rows[i + lane_count / 2]);
    }
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < lane_count; ++i) rows[i] = other[i];
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < lane_count; ++i) store(to + i * to_stride, rows[i]);
}

// Entry (i,k) of A lies at data[i·row + k·column]; of pairs k counts these.
template <typename Entry>
struct Left {
  const Entry* data;
  std::int64_t row, column;
};

template <std::int64_t registers, typename Entry>
HYDRASCOPE_INLINE void add_tile(const Left<Entry>& a, const Entry* b, const std::int64_t depth,
                                const std::int64_t stride, float* c) {
  Lanes sum[rows_at_once][registers];
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < registers; ++l)
    std::memcpy(&sum[i][l], c + i * stride + l * lane_count, sizeof(Lanes));
  for (std::int64_t k = 0; k < depth; ++k) {
    decltype(factors(b)) row[registers];
    HYDRASCOPE_UNROLL
    for (std::int64_t l = 0; l < registers; ++l) row[l] = factors(b + k * stride + l * lane_count);
    HYDRASCOPE_UNROLL
    for (std::int64_t i = 0; i < rows_at_once; ++i) {
      const auto factor = factors(a.data[i * a.row + k * a.column]);
      HYDRASCOPE_UNROLL
      for (std::int64_t l = 0; l < registers; ++l) add_products(sum[i][l], factor, row[l]);
    }
  }
  HYDRASCOPE_UNROLL
  for (std::int64_t i = 0; i < rows_at_once; ++i) HYDRASCOPE_UNROLL
  for (std::int64_t l = 0; l < registers; ++l)
    std::memcpy(c + i * stride + l * lane_count, &sum[i][l], sizeof(Lanes));
}

// C (rows, stride) += A (rows, depth) · B (depth, stride). rows: a multiple of rows_at_once; stride: of
// most_lanes.
template <typename Entry>
HYDRASCOPE_INLINE void add_product(const Left<Entry>& a, const Entry* b, const std::int64_t rows,
                                   const std::int64_t depth, const std::int64_t stride, float* c) {
  for (std::int64_t i = 0; i < rows; i += rows_at_once) {
    const Left<Entry> own{a.data + i * a.row, a.row, a.column};
    float* const to = c + i * stride;
    std::int64_t f = 0;
    for (; f + registers_at_once * lane_count <= stride; f += registers_at_once * lane_count)
      add_tile<registers_at_once>(own, b + f, depth, stride, to + f);
    for (; f < stride; f += lane_count) add_tile<1>(own, b + f, depth, stride, to + f);
  }
}

#ifdef __AVX512BF16__

// c (rows,stride) += a (rows,depth) · b (depth,stride); rows, depth whole.
HYDRASCOPE_INLINE void add_rows_times(const float* a, const std::int64_t rows, const std::int64_t depth,
                                      const float* b, const std::int64_t stride, float* c, float* spare) {
  auto* const left = reinterpret_cast<Pair*>(spare);
  Pair* const right = left + rows * depth / 2;
  for (std::int64_t i = 0; i < rows * depth; i += lane_count)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(left + i / 2),
                        __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(_mm512_loadu_ps(a + i))));
  to_pairs(b, depth, stride, right);
  add_product(Left<Pair>{left, depth / 2, 1}, right, rows, depth / 2, stride, c);
}

// c (columns,stride) += aᵀ · b for a (depth,columns), b (depth,stride); depth, columns whole.
HYDRASCOPE_INLINE void add_columns_times(const float* a, const std::int64_t depth, const std::int64_t columns,
                                         const float* b, const std::int64_t stride, float* c, float* spare) {
  auto* const left = reinterpret_cast<Pair*>(spare);
  Pair* const right = left + depth * columns / 2;
  to_pairs(a, depth, columns, left);
  to_pairs(b, depth, stride, right);
  add_product(Left<Pair>{left, 1, columns}, right, columns, depth / 2, stride, c);
}

#else

HYDRASCOPE_INLINE void add_rows_times(const float* a, const std::int64_t rows, const std::int64_t depth,
                                      const float* b, const std::int64_t stride, float* c, float*) {
  add_product(Left<float>{a, depth, 1}, b, rows, depth, stride, c);
}

HYDRASCOPE_INLINE void add_columns_times(const float* a, const std::int64_t depth, const std::int64_t columns,
                                         const float* b, const std::int64_t stride, float* c, float*) {
  add_product(Left<float>{a, 1, columns}, b, columns, depth, stride, c);
}

#endif

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
