// Blocks of tokens in the loops' buffers, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/simd/products.h"
#include "engine/attention/simd/row_access.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

HYDRASCOPE_INLINE std::int64_t whole_rows(const std::int64_t rows) {
  return (rows + rows_at_once - 1) / rows_at_once * rows_at_once;
}

HYDRASCOPE_INLINE void clear(float* from, const std::int64_t count) {
  std::memset(from, 0, static_cast<std::size_t>(count) * sizeof(float));
}

// Which of the sixteen numbers from f on are among the first `count`.
HYDRASCOPE_INLINE WholeLanes present(const std::int64_t f, const std::int64_t count) {
  return lane_order + static_cast<std::int32_t>(f) < static_cast<std::int32_t>(count);
}

// The block's rows one after another, of keys and values the real ones only, and rows of 0 up to a whole
// number of rows_at_once. How many there are without these.
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
