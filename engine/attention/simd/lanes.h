// Sixteen floats at a time (one AVX-512 register, two of AVX2, four of SSE), and the rows of features that
// the loops read and write. The files that include this are compiled once for each kind of processor, in a
// namespace of its own, so that the linker never merges their code.
#pragma once

#include <cstdint>
#include <cstring>
#if defined __AVX512F__
  #include <immintrin.h>
#endif

#include "engine/attention/simd/loop_types.h"

#ifndef HYDRASCOPE_CPU
  #error "define HYDRASCOPE_CPU as plain, avx2 or avx512"
#endif
#define HYDRASCOPE_INLINE inline __attribute__((always_inline))

namespace hydrascope::cpu::HYDRASCOPE_CPU {

using Lanes = float __attribute__((vector_size(64)));
using WholeLanes = std::int32_t __attribute__((vector_size(64)));
using HalfWords = std::uint16_t __attribute__((vector_size(32)));
using Words = std::uint32_t __attribute__((vector_size(64)));

// As wide as the processor's registers. Wider values, such as Lanes without AVX-512, are kept in memory,
// which bounds loops that do little with each number.
#if defined __AVX512F__
using Register = Lanes;
#elif defined __AVX__
using Register = float __attribute__((vector_size(32)));
#else
using Register = float __attribute__((vector_size(16)));
#endif
constexpr std::int64_t register_floats = sizeof(Register) / sizeof(float);
using HalfRegister = std::uint16_t __attribute__((vector_size(sizeof(Register) / 2)));
using WordRegister = std::uint32_t __attribute__((vector_size(sizeof(Register))));

template <typename Vector>
HYDRASCOPE_INLINE Vector load_as(const float* from) {
  Vector x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
HYDRASCOPE_INLINE Lanes load(const float* from) { return load_as<Lanes>(from); }
template <typename Vector>
HYDRASCOPE_INLINE void store(float* to, const Vector& x) {
  std::memcpy(to, &x, sizeof x);
}

// Stores past the caches, to an address that is a multiple of a register's size: a cache line that is written
// whole need not be read first. Visible to other threads after streamed(). Used only where a register is a
// line: halves of one were measured to be slower than ordinary stores.
template <typename Vector>
HYDRASCOPE_INLINE void stream(float* to, const Vector& x) {
#if defined __AVX512F__
  static_assert(sizeof(Vector) == sizeof(__m512));
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

// A vector of floats from as many bfloat16 numbers, which are the floats' upper halves.
template <typename Vector, typename HalfVector, typename WordVector>
HYDRASCOPE_INLINE Vector widened(const std::uint16_t* from) {
  HalfVector half;
  std::memcpy(&half, from, sizeof half);
  const WordVector bits = __builtin_convertvector(half, WordVector) << 16;
  Vector x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
HYDRASCOPE_INLINE Lanes load_bfloat16(const std::uint16_t* from) {
  return widened<Lanes, HalfWords, Words>(from);
}

// Reads the lines of `count` numbers into the cache, for later.
template <std::int64_t count, typename Number>
HYDRASCOPE_INLINE void prefetch(const Number* from) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i);
}

// A register of floats from floats or bfloat16 numbers.
HYDRASCOPE_INLINE Register load_register(const float* from) { return load_as<Register>(from); }
HYDRASCOPE_INLINE Register load_register(const std::uint16_t* from) {
  return widened<Register, HalfRegister, WordRegister>(from);
}

// Rounds to nearest, ties to even; NaN stays NaN.
HYDRASCOPE_INLINE void store_bfloat16(std::uint16_t* to, const Lanes& x) {
  Words bits;
  std::memcpy(&bits, &x, sizeof bits);
  const Words rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const Words quiet = (bits >> 16) | 0x40U;
  const HalfWords half = __builtin_convertvector(x == x ? rounded : quiet, HalfWords);
  std::memcpy(to, &half, sizeof half);
}

// (Adding 0 instead would change −0.)
HYDRASCOPE_INLINE Lanes all(const float value) { return value - Lanes{}; }
constexpr WholeLanes lane_order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
HYDRASCOPE_INLINE Lanes larger(const Lanes& a, const Lanes& b) { return a > b ? a : b; }
template <typename Vector>
HYDRASCOPE_INLINE Vector magnitude(const Vector& x) {
  return x < 0 ? -x : x;
}
HYDRASCOPE_INLINE float largest_of(const Lanes& x) {
  const Lanes eight =
      larger(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  const Lanes four = larger(
      eight, __builtin_shufflevector(eight, eight, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  const float left = four[0] > four[2] ? four[0] : four[2], right = four[1] > four[3] ? four[1] : four[3];
  return left > right ? left : right;
}
HYDRASCOPE_INLINE float sum_of(const Lanes& x) {
  const Lanes eight = x + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  const Lanes four =
      eight + __builtin_shufflevector(eight, eight, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// The same for a narrower register.
template <typename Vector>
HYDRASCOPE_INLINE float sum_of(const Vector& x) {
  float sum = 0;
  for (std::size_t i = 0; i < sizeof(Vector) / sizeof(float); ++i) sum += x[i];
  return sum;
}

// e^x to 1e-7 of itself: 2^n · e^r with |r| ≤ ½ ln 2 and e^r by its Taylor polynomial. Below −87 the smallest
// normal number, above 88 about the largest; NaN stays NaN.
HYDRASCOPE_INLINE Lanes exponential(const Lanes& exponent) {
  Lanes x = exponent > 88.0F ? all(88.0F) : exponent; // comparisons with NaN choose it
  x = x < -87.0F ? all(-87.0F) : x;
  constexpr float to_whole = 12582912.0F; // 1.5 · 2²³: adding it rounds to whole numbers
  const Lanes n = (x * 1.44269504F + to_whole) - to_whole;
  const Lanes r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Lanes power = r * (1.0F / 5040) + (1.0F / 720);
  power = power * r + (1.0F / 120);
  power = power * r + (1.0F / 24);
  power = power * r + (1.0F / 6);
  power = power * r + 0.5F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  const WholeLanes exponent_bits = (__builtin_convertvector(n, WholeLanes) + 127) << 23;
  Lanes scale;
  std::memcpy(&scale, &exponent_bits, sizeof scale);
  return power * scale;
}

// Near 0 by its Taylor polynomial, as 1 − 2 / (e^2x + 1) would lose small x.
HYDRASCOPE_INLINE Lanes hyperbolic_tangent(const Lanes& x) {
  const Lanes size = magnitude(x), square = x * x;
  Lanes near = square * (-1382.0F / 155925) + (62.0F / 2835);
  near = near * square - (17.0F / 315);
  near = near * square + (2.0F / 15);
  near = near * square - (1.0F / 3);
  near = x + x * square * near;
  const Lanes far = 1.0F - 2.0F / (exponential(2.0F * size) + 1.0F);
  return size < 0.25F ? near : (x < 0 ? -far : far);
}

HYDRASCOPE_INLINE Lanes logistic(const Lanes& x) { return 1.0F / (1.0F + exponential(-x)); }

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
    if (rows.head_stride == d && rows.width() % lane_count == 0) return from;
    for (std::int64_t head = 0; head < rows.heads; ++head)
      copy(buffer + head * d, from + head * rows.head_stride, d);
    return buffer;
  }
  const auto* from = static_cast<const std::uint16_t*>(rows.data) + token * rows.token_stride;
  for (std::int64_t head = 0; head < rows.heads; ++head, from += rows.head_stride) {
    std::int64_t f = 0;
    for (; f + lane_count <= d; f += lane_count) store(buffer + head * d + f, load_bfloat16(from + f));
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
      rows.width() % lane_count != 0)
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

// Which of the sixteen indices from f on are below `count`.
HYDRASCOPE_INLINE WholeLanes present(const std::int64_t f, const std::int64_t count) {
  return lane_order + static_cast<std::int32_t>(f) < static_cast<std::int32_t>(count);
}

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
