// φ of taylor, whose many features are made and used in parts, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/linear/cpu/linear_features.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// A part of taylor's features.
struct TaylorPart {
  std::int64_t i = 0;      // −2: the 1, −1: y, else y_i · y_j …
  std::int64_t first = 0;  // … for j from here on
  std::int64_t width = 0;  // how many there are
  std::int64_t offset = 0; // where they begin among all
};

template <typename Use>
HYDRASCOPE_INLINE void taylor_parts(const LinearMap& map, const Use& use) {
  const std::int64_t width = padded_to_lanes(map.outputs);
  use(TaylorPart{-2, 0, most_lanes, 0});
  use(TaylorPart{-1, 0, width, most_lanes});
  std::int64_t offset = most_lanes + width;
  for (std::int64_t i = 0; i < map.outputs; ++i) {
    const std::int64_t first = i / most_lanes * most_lanes;
    use(TaylorPart{i, first, width - first, offset});
    offset += width - first;
  }
}

// Computes a part of the features of `count` rows, followed by rows of 0 up to whole_rows(count), and calls
// use(row, f, a register of features) for each.
template <typename Use>
HYDRASCOPE_INLINE void taylor_features(const LinearMap& map, const TaylorPart& part, const std::int64_t count,
                                       const Space& space, const Use& use) {
  constexpr Lanes one = {1};
  const std::int64_t stride = padded_to_lanes(map.outputs);
  const auto own = static_cast<std::int32_t>(part.i - part.first); // i's place in the part
  Lanes not_before[most_lanes / lane_count];
  for (std::int64_t f = 0; f < most_lanes; f += lane_count) {
    const WholeLanes place = lane_order + static_cast<std::int32_t>(f);
    not_before[f / lane_count] = place == own ? all(0.70710678F) : (place > own ? all(1.0F) : Lanes{});
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const y = space.y + row * stride;
    for (std::int64_t f = 0; f < part.width; f += lane_count) {
      Lanes feature = part.i == -2 ? (f == 0 ? one : Lanes{}) : load(y + part.first + f);
      if (part.i >= 0) feature *= f < most_lanes ? not_before[f / lane_count] * y[part.i] : all(y[part.i]);
      store(space.features + row * part.width + f, feature);
      use(row, f, feature);
    }
  }
  clear(space.features + count * part.width, (whole_rows(count) - count) * part.width);
}

template <typename Number>
HYDRASCOPE_INLINE void taylor_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                   const std::int64_t value_stride, float* values, float* totals) {
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        float* const total = totals + part.offset;
        taylor_features(
            map, part, count, space,
            [&](std::int64_t, const std::int64_t f, const Lanes& feature)
                __attribute__((always_inline)) { store(total + f, load(total + f) + feature); });
        const std::int64_t rows = whole_rows(count);
        add_columns_times(right_factors(space.features, rows, part.width, as<Number>(space.spare)), rows,
                          part.width, as<const Number>(space.values), value_stride,
                          values + part.offset * value_stride);
      });
}

// Computes φ(q)·S into space.values and φ(q)·z into `denominators`.
template <typename Number>
HYDRASCOPE_INLINE void taylor_outputs(const LinearMap& map, const std::int64_t count, const Space& space,
                                      const std::int64_t value_stride, const float* values,
                                      const float* totals, float* denominators) {
  Lanes products[tokens_of_block] = {};
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        const float* const total = totals + part.offset;
        taylor_features(
            map, part, count, space,
            [&](const std::int64_t row, const std::int64_t f, const Lanes& feature)
                __attribute__((always_inline)) { products[row] += feature * load(total + f); });
        const std::int64_t rows = whole_rows(count);
        rows_times<Start::sums>(left_factors(space.features, rows, part.width, as<Number>(space.spare)), rows,
                                part.width,
                                right_factors(values + part.offset * value_stride, part.width, value_stride,
                                              as<Number>(space.sums)),
                                value_stride, space.values);
      });
  for (std::int64_t row = 0; row < count; ++row) denominators[row] = sum_of(products[row]);
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
