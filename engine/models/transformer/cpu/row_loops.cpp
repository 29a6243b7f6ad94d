// The loops over the weights of a product, for the processor that HYDRASCOPE_CPU names. Nothing here calls a
// function that is not inlined (softmax_loops.cpp says why).
#if defined __F16C__
  #include <immintrin.h>
#endif

#include "engine/attention/simd/products.h"
#include "engine/models/transformer/cpu/row.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

HYDRASCOPE_INLINE float number(const float x) { return x; }
HYDRASCOPE_INLINE float number(const _Float16 x) { return static_cast<float>(x); }
HYDRASCOPE_INLINE float number(const std::uint16_t x) { // bfloat16
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// GCC 12 converts a vector of _Float16 one by one, and warns of what its unmasked function does not set.
HYDRASCOPE_INLINE Lanes load(const _Float16* from) {
#if defined __AVX512F__
  return __builtin_bit_cast(
      Lanes, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#elif defined __F16C__
  return __builtin_bit_cast(Lanes, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  Lanes x = {};
  for (std::int64_t i = 0; i < lane_count; ++i) x[i] = number(from[i]);
  return x;
#endif
}
using cpu::HYDRASCOPE_CPU::load;

// a·b + sum with one rounding where the processor can. Left to the compiler, GCC 14 rounds once for two
// columns and twice for one, with AVX2.
HYDRASCOPE_INLINE Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& sum) {
#if defined __AVX512F__
  return __builtin_bit_cast(Lanes,
                            _mm512_fmadd_ps(__builtin_bit_cast(__m512, a), __builtin_bit_cast(__m512, b),
                                            __builtin_bit_cast(__m512, sum)));
#elif defined __FMA__
  return __builtin_bit_cast(Lanes,
                            _mm256_fmadd_ps(__builtin_bit_cast(__m256, a), __builtin_bit_cast(__m256, b),
                                            __builtin_bit_cast(__m256, sum)));
#else
  return a * b + sum;
#endif
}
HYDRASCOPE_INLINE float multiply_add(const float a, const float b, const float sum) {
#if defined __FMA__
  return __builtin_fmaf(a, b, sum);
#else
  return a * b + sum;
#endif
}

// One row after another: the hardware prefetcher follows a single stream best but stops at the end of a page,
// so lines 4 KiB ahead are requested here. Zen 5, float16: 65 GB/s; four rows at a time with the next four
// prefetched: 50; a plain sum: 60 to 65.
template <std::int64_t columns, typename Number>
HYDRASCOPE_INLINE void multiply(const float* const* x, const Number* weights, const std::int64_t in,
                                const std::int64_t rows, float* const* out) {
  constexpr std::int64_t sums = 4, step = sums * lane_count;
  constexpr std::int64_t ahead = 4096 / static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t row = 0; row < rows; ++row) {
    const Number* const from = weights + row * in;
    Lanes sum[columns][sums] = {};
    std::int64_t i = 0;
    for (; i + step <= in; i += step) {
      prefetch<step>(from + i + ahead);
      HYDRASCOPE_UNROLL
      for (std::int64_t s = 0; s < sums; ++s) {
        const Lanes w = load(from + i + s * lane_count);
        HYDRASCOPE_UNROLL
        for (std::int64_t c = 0; c < columns; ++c)
          sum[c][s] = multiply_add(load(x[c] + i + s * lane_count), w, sum[c][s]);
      }
    }
    for (; i + lane_count <= in; i += lane_count) {
      const Lanes w = load(from + i);
      HYDRASCOPE_UNROLL
      for (std::int64_t c = 0; c < columns; ++c) sum[c][0] = multiply_add(load(x[c] + i), w, sum[c][0]);
    }
    HYDRASCOPE_UNROLL
    for (std::int64_t c = 0; c < columns; ++c) {
      float total = sum_of((sum[c][0] + sum[c][1]) + (sum[c][2] + sum[c][3]));
      for (std::int64_t j = i; j < in; ++j) total = multiply_add(x[c][j], number(from[j]), total);
      out[c][row] = total;
    }
  }
}

template <typename Number>
HYDRASCOPE_INLINE void product_of(const float* const* x, const void* weights, const int columns,
                                  const std::int64_t in, const std::int64_t rows, float* const* out) {
  const auto* const numbers = static_cast<const Number*>(weights);
  if (columns == 1)
    multiply<1>(x, numbers, in, rows, out);
  else
    multiply<2>(x, numbers, in, rows, out);
}

void product(const float* const* x, const void* weights, const RowNumber number, const int columns,
             const std::int64_t in, const std::int64_t rows, float* const* out) {
  switch (number) {
    case RowNumber::float32: return product_of<float>(x, weights, columns, in, rows, out);
    case RowNumber::bfloat16: return product_of<std::uint16_t>(x, weights, columns, in, rows, out);
    case RowNumber::float16: return product_of<_Float16>(x, weights, columns, in, rows, out);
  }
}

constexpr RowLoops loops{product};

} // namespace

const RowLoops& row_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
