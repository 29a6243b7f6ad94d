// Copying tokens' features between memory and the loops' buffers, for the processor that HYDRASCOPE_CPU
// names.
#pragma once

#include "engine/attention/simd/lanes.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
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
