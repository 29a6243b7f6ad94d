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

// Registers of a part's features of one row.
class TaylorFeatures {
public:
  HYDRASCOPE_INLINE explicit TaylorFeatures(const TaylorPart& part) : part_(part) {
    const auto own = static_cast<std::int32_t>(part.i - part.first); // i's place in the part
    for (std::int64_t f = 0; f < most_lanes; f += lane_count) {
      const WholeLanes place = lane_order + static_cast<std::int32_t>(f);
      not_before_[f / lane_count] = place == own ? all(0.70710678F) : (place > own ? all(1.0F) : Lanes{});
    }
  }

  HYDRASCOPE_INLINE Lanes of(const float* y, const std::int64_t f) const {
    constexpr Lanes one = {1};
    if (part_.i == -2) return f == 0 ? one : Lanes{};
    const Lanes feature = load(y + part_.first + f);
    if (part_.i == -1) return feature;
    return feature * (f < most_lanes ? not_before_[f / lane_count] * y[part_.i] : all(y[part_.i]));
  }

private:
  TaylorPart part_;
  Lanes not_before_[most_lanes / lane_count];
};

template <typename Number>
HYDRASCOPE_INLINE void taylor_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                   const std::int64_t value_stride, float* values, float* totals) {
  const std::int64_t stride = padded_to_lanes(map.outputs), rows = whole_rows(count);
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        const TaylorFeatures features(part);
        for (std::int64_t f = 0; f < part.width; f += lane_count) {
          Lanes total = load(totals + part.offset + f);
          for (std::int64_t row = 0; row < count; ++row) {
            const Lanes feature = features.of(space.y + row * stride, f);
            store(space.features + row * part.width + f, feature);
            total += feature;
          }
          store(totals + part.offset + f, total);
        }
        clear(space.features + count * part.width, (rows - count) * part.width);
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
  const std::int64_t stride = padded_to_lanes(map.outputs), rows = whole_rows(count);
  Lanes products[tokens_of_block] = {};
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        const TaylorFeatures features(part);
        for (std::int64_t row = 0; row < count; ++row) {
          Lanes product = products[row];
          for (std::int64_t f = 0; f < part.width; f += lane_count) {
            const Lanes feature = features.of(space.y + row * stride, f);
            store(space.features + row * part.width + f, feature);
            product += feature * load(totals + part.offset + f);
          }
          products[row] = product;
        }
        clear(space.features + count * part.width, (rows - count) * part.width);
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
