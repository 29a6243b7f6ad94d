// Sixteen floats at a time: one AVX-512 register, two of AVX2, four of SSE. The files that include this are
// compiled once for each kind of processor, in a namespace of its own, so that the linker never merges their
// code.
#pragma once

#include <cstdint>
#include <cstring>
#if defined __AVX512F__
  #include <immintrin.h>
#endif

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

HYDRASCOPE_INLINE Lanes load_bfloat16(const std::uint16_t* from) {
  HalfWords half;
  std::memcpy(&half, from, sizeof half);
  const Words bits = __builtin_convertvector(half, Words) << 16;
  Lanes x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
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

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
