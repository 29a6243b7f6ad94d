// A token's features in and out of memory, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/simd/lanes.h"
#include "engine/attention/simd/rows.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// (A call of memcpy takes longer than a head's few registers.)
HYDRASCOPE_INLINE void copy(float* to, const float* from, const std::int64_t count) {
  std::int64_t f = 0;
  for (; f + lane_count <= count; f += lane_count) store(to + f, load(from + f));
  if (f < count) std::memcpy(to + f, from + f, static_cast<std::size_t>(count - f) * sizeof(float));
}

// A token's features as floats: where they lie if that serves, else gathered into the buffer, which is zero
// beyond them.
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

// Where a token's results are to be put before put_row: its own place if that serves.
HYDRASCOPE_INLINE float* place_of(const Rows& rows, const std::int64_t token, float* buffer) {
  if (rows.element != Element::float32 || rows.head_stride != rows.head_width ||
      rows.width() % lane_count != 0)
    return buffer;
  return static_cast<float*>(rows.data) + token * rows.token_stride;
}

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

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
