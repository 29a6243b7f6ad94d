// φ of taylor, whose many features are made and used in parts, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/linear/cpu/linear_keys.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Features that are made and multiplied together, at most features_at_once() of them.
struct TaylorPart {
  enum class Kind {
    linear, // 1 and fifteen zeros, then y
    own, // y_i y_j within one sixteen: the squares, then eight rows of sixteen, row i with the products of i
         // and of 15 − i
    cross, // y_i y_j for `count` i from `i` on, each with `width` j from `first` on, all of later sixteens
  };
  Kind kind = Kind::linear;
  std::int64_t i = 0, count = 0, first = 0, width = 0;
  std::int64_t features = 0, offset = 0; // how many there are, and where they begin among all
};

template <typename Use>
HYDRASCOPE_INLINE void taylor_parts(const LinearMap& map, const Use& use) {
  const std::int64_t width = padded_to_lanes(map.outputs), most = map.features_at_once();
  std::int64_t offset = 0;
  const auto next = [&](TaylorPart part) __attribute__((always_inline)) {
    part.offset = offset;
    offset += part.features;
    use(part);
  };
  next({.kind = TaylorPart::Kind::linear, .width = width, .features = most_lanes + width});
  for (std::int64_t i = 0; i < width; i += most_lanes) {
    next({.kind = TaylorPart::Kind::own, .i = i, .features = taylor_own_features});
    const std::int64_t first = i + most_lanes, later = width - first;
    if (later == 0) break;
    const std::int64_t at_once = most / later;
    for (std::int64_t one = i; one < first; one += at_once) {
      const std::int64_t count = first - one < at_once ? first - one : at_once;
      next({.kind = TaylorPart::Kind::cross,
            .i = one,
            .count = count,
            .first = first,
            .width = later,
            .features = count * later});
    }
  }
}

// Calls use(f, make) for each register of a part's features. f: its first feature; make(y) computes it from a
// row.
template <typename Use>
HYDRASCOPE_INLINE void taylor_registers(const TaylorPart& part, const Use& use) {
  constexpr Lanes one = {1};
  switch (part.kind) {
    case TaylorPart::Kind::linear:
      for (std::int64_t f = 0; f < most_lanes; f += lane_count)
        use(
            f, [f](const float*) __attribute__((always_inline)) { return f == 0 ? one : Lanes{}; });
      for (std::int64_t f = 0; f < part.width; f += lane_count)
        use(
            most_lanes + f, [f](const float* y) __attribute__((always_inline)) { return load(y + f); });
      return;
    case TaylorPart::Kind::own:
      for (std::int64_t f = 0; f < most_lanes; f += lane_count)
        use(
            f, [at = part.i + f](const float* y) __attribute__((always_inline)) {
              const Lanes x = load(y + at);
              return x * x * 0.70710678F;
            });
      // Row i: y_i y_j at places j > i; at places p < i, in reverse, y_(15−i) y_(15−p).
      for (std::int64_t i = 0; i < most_lanes / 2; ++i)
        for (std::int64_t f = 0; f < most_lanes; f += lane_count) {
          const WholeLanes place = lane_order + static_cast<std::int32_t>(f);
          const auto own = static_cast<std::int32_t>(i);
          const Lanes after = place > own ? all(1.0F) : Lanes{}, before = place < own ? all(1.0F) : Lanes{};
          const std::int64_t here = part.i + f, there = part.i + most_lanes - lane_count - f,
                             first = part.i + i, opposite = part.i + most_lanes - 1 - i;
          use(
              most_lanes * (1 + i) + f, [=](const float* y) __attribute__((always_inline)) {
                return load(y + here) * (after * y[first]) +
                       reversed(load(y + there)) * (before * y[opposite]);
              });
        }
      return;
    case TaylorPart::Kind::cross:
      for (std::int64_t i = 0; i < part.count; ++i)
        for (std::int64_t f = 0; f < part.width; f += lane_count)
          use(
              i * part.width + f, [ at = part.first + f, index = part.i + i ](const float* y)
                                      __attribute__((always_inline)) { return load(y + at) * y[index]; });
      return;
  }
}

template <typename Number>
HYDRASCOPE_INLINE void taylor_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                   const std::int64_t value_stride, float* values, float* totals) {
  const std::int64_t stride = padded_to_lanes(map.outputs);
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        auto* const features = as<Number>(space.features);
        taylor_registers(
            part, [&](const std::int64_t f, const auto& make) __attribute__((always_inline)) {
              put_keys(
                  count, features + f, part.features,
                  totals + part.offset + f, [&](const std::int64_t row) __attribute__((always_inline)) {
                    return make(space.y + row * stride);
                  });
            });
        clear_absent_keys<Number>(count, part.features, space);
        add_columns_times(static_cast<const Number*>(features), whole_rows(count), part.features,
                          as<const Number>(space.values), value_stride, values + part.offset * value_stride);
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
        auto* const features = as<Number>(space.features);
        const std::int64_t row_factors = part.features / depth_of<Number>;
        taylor_registers(
            part, [&](const std::int64_t f, const auto& make) __attribute__((always_inline)) {
              const Lanes total = load(totals + part.offset + f);
              for (std::int64_t row = 0; row < count; ++row) {
                const Lanes feature = make(space.y + row * stride);
                store_left(features + row * row_factors, f, feature);
                products[row] += feature * total;
              }
            });
        clear(space.features + count * row_factors, (rows - count) * row_factors);
        rows_times<Start::sums>(static_cast<const Number*>(features), rows, part.features,
                                right_factors(values + part.offset * value_stride, part.features,
                                              value_stride, as<Number>(space.sums)),
                                value_stride, space.values);
      });
  for (std::int64_t row = 0; row < count; ++row) denominators[row] = sum_of(products[row]);
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
