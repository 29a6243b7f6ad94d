// A register of floats at a time (sixteen with AVX-512, eight with AVX2, else four), and the rows of features
// that the loops read and write. The files that include this are compiled once for each kind of processor, in
// a namespace of its own, so that the linker never merges their code.
#pragma once

#include <cstdint>
#include <cstring>
#if defined __AVX__
  #include <immintrin.h>
#endif

#include "engine/attention/simd/loop_types.h"

#ifndef HYDRASCOPE_CPU
  #error "define HYDRASCOPE_CPU as plain, avx2, avx512, avx512bf16 or amx"
#endif
#define HYDRASCOPE_INLINE inline __attribute__((always_inline))
// Registers cannot be indexed: loops over them have to be unrolled.
#define HYDRASCOPE_UNROLL _Pragma("GCC unroll 16")

namespace hydrascope::cpu::HYDRASCOPE_CPU {

// As wide as the processor's registers. GCC keeps wider values in memory, and compares them number by number.
#if defined __AVX512F__
constexpr std::int64_t lane_count = 16;
#elif defined __AVX__
constexpr std::int64_t lane_count = 8;
#else
constexpr std::int64_t lane_count = 4;
#endif
static_assert(most_lanes % lane_count == 0);

using Lanes = float __attribute__((vector_size(4 * lane_count)));
using WholeLanes = std::int32_t __attribute__((vector_size(4 * lane_count)));
using Words = std::uint32_t __attribute__((vector_size(4 * lane_count)));
using HalfWords = std::uint16_t __attribute__((vector_size(2 * lane_count)));

HYDRASCOPE_INLINE Lanes load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
HYDRASCOPE_INLINE void store(float* to, const Lanes& x) { std::memcpy(to, &x, sizeof x); }

// Stores past the caches, to an address that is a multiple of a register's size: a cache line that is written
// whole need not be read first. Visible to other threads after streamed(). Used only where a register is a
// line: halves of one were measured to be slower than ordinary stores.
HYDRASCOPE_INLINE void stream(float* to, const Lanes& x) {
#if defined __AVX512F__
  _mm512_stream_ps(to, reinterpret_cast<const __m512&>(x));
#else
  store(to, x);
#endif
}
HYDRASCOPE_INLINE void streamed() {
#if defined __AVX512F__
  _mm_sfence();
#endif
}

// Floats from as many bfloat16 numbers, which are the floats' upper halves.
HYDRASCOPE_INLINE Lanes load(const std::uint16_t* from) {
  HalfWords half;
  std::memcpy(&half, from, sizeof half);
  const Words bits = __builtin_convertvector(half, Words) << 16;
  Lanes x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Reads the lines of `count` numbers into the cache, for later.
template <std::int64_t count, typename Number>
HYDRASCOPE_INLINE void prefetch(const Number* from) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i);
}

// Rounds to nearest, ties to even; NaN stays NaN. (The processor's own instruction makes small numbers 0.)
HYDRASCOPE_INLINE void store_bfloat16(std::uint16_t* to, const Lanes& x) {
#ifdef __AVX512BF16__
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(__builtin_bit_cast(__m512, x))));
#else
  Words bits;
  std::memcpy(&bits, &x, sizeof bits);
  const Words rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const Words quiet = (bits >> 16) | 0x40U;
  const HalfWords half = __builtin_convertvector(x == x ? rounded : quiet, HalfWords);
  std::memcpy(to, &half, sizeof half);
#endif
}

// (Adding 0 instead would change −0.)
HYDRASCOPE_INLINE Lanes all(const float value) { return value - Lanes{}; }
#if defined __AVX512F__
constexpr WholeLanes lane_order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined __AVX__
constexpr WholeLanes lane_order = {0, 1, 2, 3, 4, 5, 6, 7};
#else
constexpr WholeLanes lane_order = {0, 1, 2, 3};
#endif
// b where one of them is NaN. GCC makes two instructions of a comparison of sixteen numbers; and GCC 12 warns
// of what the functions without a mask do not set, here and below.
HYDRASCOPE_INLINE Lanes larger(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_bit_cast(
      Lanes, _mm512_maskz_max_ps(0xffff, __builtin_bit_cast(__m512, a), __builtin_bit_cast(__m512, b)));
#else
  return a > b ? a : b;
#endif
}
HYDRASCOPE_INLINE Lanes smaller(const Lanes& a, const Lanes& b) {
#if defined __AVX512F__
  return __builtin_bit_cast(
      Lanes, _mm512_maskz_min_ps(0xffff, __builtin_bit_cast(__m512, a), __builtin_bit_cast(__m512, b)));
#else
  return a < b ? a : b;
#endif
}
HYDRASCOPE_INLINE Lanes magnitude(const Lanes& x) { return x < 0 ? -x : x; }

// Four numbers, of which each is combine() of every fourth.
template <typename Combine>
HYDRASCOPE_INLINE Lanes folded_to_four(Lanes x, [[maybe_unused]] const Combine& combine) {
#if defined __AVX512F__
  x = combine(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  x = combine(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
#elif defined __AVX__
  x = combine(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
#endif
  return x;
}
HYDRASCOPE_INLINE float largest_of(const Lanes& x) {
  const Lanes four = folded_to_four(x, larger);
  const float left = four[0] > four[2] ? four[0] : four[2], right = four[1] > four[3] ? four[1] : four[3];
  return left > right ? left : right;
}
HYDRASCOPE_INLINE float sum_of(const Lanes& x) {
  const Lanes four = folded_to_four(x, [](const Lanes& a, const Lanes& b) { return a + b; });
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// The last number first.
HYDRASCOPE_INLINE Lanes reversed(const Lanes& x) {
#if defined __AVX512F__
  return __builtin_shufflevector(x, x, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#elif defined __AVX__
  return __builtin_shufflevector(x, x, 7, 6, 5, 4, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(x, x, 3, 2, 1, 0);
#endif
}

// |x| < 2²².
HYDRASCOPE_INLINE Lanes nearest_whole(const Lanes& x) {
#if defined __AVX512F__
  return __builtin_bit_cast(Lanes, _mm512_maskz_roundscale_ps(0xffff, __builtin_bit_cast(__m512, x), 0));
#else
  constexpr float to_whole = 12582912.0F; // 1.5 · 2²³: adding it rounds
  return (x + to_whole) - to_whole;
#endif
}

// x · 2^n for whole n of −126 … 127.
HYDRASCOPE_INLINE Lanes times_power_of_two(const Lanes& x, const Lanes& n) {
#if defined __AVX512F__
  return __builtin_bit_cast(
      Lanes, _mm512_maskz_scalef_ps(0xffff, __builtin_bit_cast(__m512, x), __builtin_bit_cast(__m512, n)));
#else
  const WholeLanes exponent_bits = (__builtin_convertvector(n, WholeLanes) + 127) << 23;
  Lanes scale;
  std::memcpy(&scale, &exponent_bits, sizeof scale);
  return x * scale;
#endif
}

// e^x for x ≤ 88, to 1e-7 of itself: 2^n · e^r with |r| ≤ ½ ln 2 and e^r by the polynomial with 1 + r whose
// largest relative error there, 3e-9, is the least. Below −87 it is e^−87; NaN stays NaN.
HYDRASCOPE_INLINE Lanes exponential(const Lanes& exponent) {
  const Lanes x = larger(all(-87.0F), exponent);
  const Lanes n = nearest_whole(x * 1.44269504F);
  const Lanes r = (x - n * 0.693359375F) + n * 2.12194440e-4F; // ln 2 in two parts
  Lanes power = r * 0.00138145402F + 0.00836874539F;
  power = power * r + 0.0416683908F;
  power = power * r + 0.166665204F;
  power = power * r + 0.499999934F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  return times_power_of_two(power, n);
}

// The same to 1.1e-4, for what is rounded to bfloat16 (2e-3).
HYDRASCOPE_INLINE Lanes rough_exponential(const Lanes& exponent) {
  const Lanes x = larger(all(-87.0F), exponent);
  const Lanes n = nearest_whole(x * 1.44269504F);
  const Lanes r = x - n * 0.693147181F;
  Lanes power = r * 0.165178359F + 0.504134598F;
  power = power * r + 1.00019623F;
  power = power * r + 1.0F;
  return times_power_of_two(power, n);
}

// log x of normal x > 0, to 1.2e-7 of itself or 1e-7, whichever is larger: n · log 2 + log m for x = 2^n · m
// with m of √½ … √2, and log m = 2 artanh((m − 1) / (m + 1)) by the first terms of its series. NaN stays NaN.
HYDRASCOPE_INLINE Lanes logarithm(const Lanes& x) {
  Words bits;
  std::memcpy(&bits, &x, sizeof bits);
  const Words half_root = Words{} + 0x3f3504f3U; // √½
  const Words above = bits - half_root;
  const WholeLanes n = __builtin_bit_cast(WholeLanes, above) >> 23;
  const Words mantissa = (above & 0x7fffffU) + half_root;
  Lanes m;
  std::memcpy(&m, &mantissa, sizeof m);
  const Lanes s = (m - 1.0F) / (m + 1.0F), square = s * s;
  Lanes series = square * (2.0F / 9) + (2.0F / 7);
  series = series * square + (2.0F / 5);
  series = series * square + (2.0F / 3);
  series = series * square + 2.0F;
  const Lanes power = __builtin_convertvector(n, Lanes);
  const Lanes result = (power * -2.12194440e-4F + s * series) + power * 0.693359375F; // log 2 in two parts
  return x == x ? result : x;
}

// Near 0 by its Taylor polynomial, as 1 − 2 / (e^2x + 1) would lose small x; beyond 9 it is 1.
HYDRASCOPE_INLINE Lanes hyperbolic_tangent(const Lanes& x) {
  const Lanes size = magnitude(x), square = x * x;
  Lanes near = square * (-1382.0F / 155925) + (62.0F / 2835);
  near = near * square - (17.0F / 315);
  near = near * square + (2.0F / 15);
  near = near * square - (1.0F / 3);
  near = x + x * square * near;
  const Lanes far = 1.0F - 2.0F / (exponential(smaller(all(20.0F), 2.0F * size)) + 1.0F);
  return size < 0.25F ? near : (x < 0 ? -far : far);
}

HYDRASCOPE_INLINE Lanes logistic(const Lanes& x) {
  return 1.0F / (1.0F + exponential(smaller(all(88.0F), -x)));
}

// ---- Copying tokens' features between memory and the loops' buffers ----

namespace {

// (A call of memcpy takes longer than copying a head's few registers.)
HYDRASCOPE_INLINE void copy(float* to, const float* from, const std::int64_t count) {
  std::int64_t f = 0;
  for (; f + lane_count <= count; f += lane_count) store(to + f, load(from + f));
  if (f < count) std::memcpy(to + f, from + f, static_cast<std::size_t>(count - f) * sizeof(float));
}

// A token's features as floats: a pointer to where they lie if their layout permits, else to the buffer, into
// which they are gathered and which is zero beyond them.
HYDRASCOPE_INLINE const float* row_of(const Rows& rows, const std::int64_t token, float* buffer) {
  const std::int64_t d = rows.head_width;
  if (rows.element == Element::float32) {
    const auto* from = static_cast<const float*>(rows.data) + token * rows.token_stride;
    if (rows.head_stride == d && rows.width() % most_lanes == 0) return from;
    for (std::int64_t head = 0; head < rows.heads; ++head)
      copy(buffer + head * d, from + head * rows.head_stride, d);
    return buffer;
  }
  const auto* from = static_cast<const std::uint16_t*>(rows.data) + token * rows.token_stride;
  for (std::int64_t head = 0; head < rows.heads; ++head, from += rows.head_stride) {
    std::int64_t f = 0;
    for (; f + lane_count <= d; f += lane_count) store(buffer + head * d + f, load(from + f));
    for (; f < d; ++f) {
      const std::uint32_t bits = static_cast<std::uint32_t>(from[f]) << 16;
      std::memcpy(buffer + head * d + f, &bits, sizeof bits);
    }
  }
  return buffer;
}

// Where to write a token's results before put_row(): its own place if the layout permits, else the buffer.
HYDRASCOPE_INLINE float* place_of(const Rows& rows, const std::int64_t token, float* buffer) {
  if (rows.element != Element::float32 || rows.head_stride != rows.head_width ||
      rows.width() % most_lanes != 0)
    return buffer;
  return static_cast<float*>(rows.data) + token * rows.token_stride;
}

// Writes a token's features; does nothing if `from` is their own place.
HYDRASCOPE_INLINE void put_row(const Rows& rows, const std::int64_t token, const float* from) {
  const std::int64_t d = rows.head_width;
  if (rows.element == Element::float32) {
    float* to = static_cast<float*>(rows.data) + token * rows.token_stride;
    if (to == from) return;
    for (std::int64_t head = 0; head < rows.heads; ++head)
      copy(to + head * rows.head_stride, from + head * d, d);
    return;
  }
  auto* to = static_cast<std::uint16_t*>(rows.data) + token * rows.token_stride;
  for (std::int64_t head = 0; head < rows.heads; ++head, to += rows.head_stride, from += d) {
    std::int64_t f = 0;
    for (; f + lane_count <= d; f += lane_count) store_bfloat16(to + f, load(from + f));
    if (f == d) continue;
    float rest[lane_count] = {};
    std::uint16_t rounded[lane_count];
    std::memcpy(rest, from + f, static_cast<std::size_t>(d - f) * sizeof(float));
    store_bfloat16(rounded, load(rest));
    std::memcpy(to + f, rounded, static_cast<std::size_t>(d - f) * sizeof(std::uint16_t));
  }
}

HYDRASCOPE_INLINE bool real(const unsigned char* mask, const std::int64_t token) {
  return mask == nullptr || mask[token] != 0;
}

// Rows of a matrix product's left factor that are taken at once (products.h).
constexpr std::int64_t rows_at_once = 4;

HYDRASCOPE_INLINE std::int64_t whole_rows(const std::int64_t rows) {
  return (rows + rows_at_once - 1) / rows_at_once * rows_at_once;
}

HYDRASCOPE_INLINE void clear(float* from, const std::int64_t count) {
  std::memset(from, 0, static_cast<std::size_t>(count) * sizeof(float));
}

HYDRASCOPE_INLINE bool any(const WholeLanes& chosen) { // 0 or −1 each
#if defined __AVX512F__
  return _mm512_test_epi32_mask(__builtin_bit_cast(__m512i, chosen), __builtin_bit_cast(__m512i, chosen)) !=
         0;
#elif defined __AVX__
  return _mm256_movemask_ps(__builtin_bit_cast(__m256, chosen)) != 0;
#else
  return (chosen[0] | chosen[1] | chosen[2] | chosen[3]) != 0;
#endif
}

// Which of the indices from f on, one for each lane, are below `count`.
HYDRASCOPE_INLINE WholeLanes present(const std::int64_t f, const std::int64_t count) {
  return lane_order + static_cast<std::int32_t>(f) < static_cast<std::int32_t>(count);
}

// Requests rows of a range of tokens, whose heads lie side by side, from memory, a part at each of some
// calls, while something else is computed. Into the second-level cache: into the first was measured to be
// slower.
class Prefetch {
public:
  HYDRASCOPE_INLINE Prefetch(const Rows& rows, const TokenRange range, const std::int64_t calls)
      : row_bytes_(rows.width() * size_of(rows)),
        skipped_bytes_(rows.token_stride * size_of(rows) - row_bytes_),
        next_(static_cast<const char*>(rows.data) + range.first * rows.token_stride * size_of(rows)),
        end_of_row_(next_ + row_bytes_),
        rows_left_(range.last - range.first),
        bytes_at_once_(calls > 0 ? (rows_left_ * row_bytes_ + calls - 1) / calls : 0) {}

  HYDRASCOPE_INLINE void operator()() {
    for (std::int64_t left = bytes_at_once_; left > 0 && rows_left_ > 0;) {
      const bool whole = left >= end_of_row_ - next_;
      const char* const end = whole ? end_of_row_ : next_ + left;
      left -= end - next_;
      for (; next_ < end; next_ += line) __builtin_prefetch(next_, 0, 2);
      if (!whole) continue;
      next_ = end_of_row_ + skipped_bytes_;
      end_of_row_ = next_ + row_bytes_;
      --rows_left_;
    }
  }

private:
  static constexpr std::int64_t line = 64;
  static std::int64_t size_of(const Rows& rows) { return rows.element == Element::float32 ? 4 : 2; }

  std::int64_t row_bytes_, skipped_bytes_;
  const char *next_, *end_of_row_;
  std::int64_t rows_left_, bytes_at_once_;
};

struct NoPrefetch {
  HYDRASCOPE_INLINE void operator()() const {}
};

// Copies the block's real rows one after another to `to`, followed by rows of 0 up to a multiple of
// rows_at_once. Returns the number of real rows.
HYDRASCOPE_INLINE std::int64_t gather(const Rows& rows, const unsigned char* mask, const TokenRange block,
                                      float* to) {
  const std::int64_t padded = padded_to_lanes(rows.head_width);
  if (padded != rows.head_width) clear(to, whole_rows(block.last - block.first) * padded);
  std::int64_t count = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    if (!real(mask, token)) continue;
    float* const place = to + count * padded;
    const float* const row = row_of(rows, token, place);
    if (row != place) copy(place, row, padded);
    ++count;
  }
  clear(to + count * padded, (whole_rows(count) - count) * padded);
  return count;
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
