// φ of a block's keys from y, into the sums of a head, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/linear/cpu/linear_features.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Takes the exponents of a block's keys into a register of the largest so far; rescales the sums where these
// grow. Returns the largest.
template <PointMap map, bool negative>
HYDRASCOPE_INLINE Lanes take_largest(const float* y, const float* shifts, const std::int64_t count,
                                     const std::int64_t width, const std::int64_t value_stride, float* values,
                                     float* totals, float* largest) {
  const Lanes before = load(largest);
  Lanes top = before;
  for (std::int64_t row = 0; row < count; ++row)
    top = larger(exponent_of<map, negative>(load(y + row * width), shifts[row]), top);
  if (!any(before < top)) return top;
  store(largest, top);
  const Lanes shrunk = exponential(before - top);
  const Lanes total = load(totals);
  store(totals, total == 0 ? total : total * shrunk); // without a key so far `shrunk` is NaN
  for (std::int64_t i = 0; i < lane_count; ++i) {
    if (!(before[i] < top[i])) continue;
    float* const row = values + i * value_stride;
    for (std::int64_t f = 0; f < value_stride; f += lane_count) store(row + f, load(row + f) * shrunk[i]);
  }
  return top;
}

// Stores a register of features of each key, feature_of(row), and adds them to `added`.
template <typename Number, typename FeatureOf>
HYDRASCOPE_INLINE void put_keys(const std::int64_t count, Number* features, const std::int64_t stride,
                                float* added, const FeatureOf& feature_of) {
  Lanes sum = load(added);
  std::int64_t row = 0;
  for (; row + 1 < count; row += 2) {
    const Lanes first = feature_of(row), second = feature_of(row + 1);
    store_right(features, row, stride, 0, first, second);
    sum += first;
    sum += second;
  }
  if (row < count) {
    const Lanes last = feature_of(row);
    store_right(features, row, stride, 0, last, Lanes{});
    sum += last;
  }
  store(added, sum);
}

// The rows of features after the last key's, up to whole_rows(count).
template <typename Number>
HYDRASCOPE_INLINE void clear_absent_keys(const std::int64_t count, const std::int64_t features,
                                         const Space& space) {
  const std::int64_t done = (count + 1) / 2 * 2; // they are made by two
  clear(space.features + done * features / depth_of<Number>,
        (whole_rows(count) - done) * features / depth_of<Number>);
}

template <typename Number, PointMap map>
HYDRASCOPE_INLINE void exponential_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                        const std::int64_t value_stride, float* values, float* totals,
                                        float* largest, float* added) {
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  const float* const shifts = space.of_row;
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const float* const y = space.y + f;
    Number* const features = as<Number>(space.features) + f;
    const auto put_half = [&]<bool negative>(const Lanes& top) __attribute__((always_inline)) {
      const std::int64_t offset = negative ? width : 0;
      put_keys(
          count, features + offset, stride,
          added + offset + f, [&](const std::int64_t row) __attribute__((always_inline)) {
            const Lanes at = load(y + row * width);
            const float shift = shifts[negative ? tokens_of_block + row : row];
            const Lanes feature = times_factor<map>(
                feature_exponential<Number>(exponent_of<map, negative>(at, shift) - top), at);
            return kept(feature, f, whole.outputs, Lanes{});
          });
    };
    put_half.template operator()<false>(take_largest<map, false>(
        y, shifts, count, width, value_stride, values + f * value_stride, totals + f, largest + f));
    if constexpr (has_two_halves(map)) {
      const std::int64_t second = width + f;
      put_half.template operator()<true>(take_largest<map, true>(y, shifts + tokens_of_block, count, width,
                                                                 value_stride, values + second * value_stride,
                                                                 totals + second, largest + second));
    }
  }
}

template <typename Number, PointMap map>
HYDRASCOPE_INLINE void plain_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                  float* totals) {
  constexpr bool weighted = map == PointMap::relu_token_weighted;
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  auto* const features = as<Number>(space.features);
  for (std::int64_t f = 0; f < width; f += lane_count) {
    Lanes total = load(totals + f), second_total = weighted ? load(totals + width + f) : Lanes{};
    for (std::int64_t row = 0; row < count; row += 2) {
      Lanes firsts[2] = {}, seconds[2] = {};
      HYDRASCOPE_UNROLL
      for (std::int64_t i = 0; i < 2; ++i) {
        const std::int64_t at = row + i;
        if (at == count) break;
        const Lanes feature = plain_feature<map>(load(space.y + at * width + f), space.of_row[at]);
        firsts[i] = kept(feature, f, whole.outputs, Lanes{});
        if constexpr (weighted) {
          seconds[i] = firsts[i] * space.of_row[tokens_of_block + at];
          second_total += seconds[i];
          firsts[i] *= space.of_row[at];
        }
        total += firsts[i];
      }
      store_right(features, row, stride, f, firsts[0], firsts[1]);
      if constexpr (weighted) store_right(features, row, stride, width + f, seconds[0], seconds[1]);
    }
    store(totals + f, total);
    if constexpr (weighted) store(totals + width + f, second_total);
  }
}

// The features of a block's keys, of all maps except taylor, followed by rows of 0 up to whole_rows(count).
// Adds them to `added`, which may be `totals`; rescales the sums where the largest grows.
template <typename Number>
HYDRASCOPE_INLINE void key_features(const LinearMap& map, const std::int64_t count, const Space& space,
                                    const std::int64_t value_stride, float* values, float* totals,
                                    float* largest, float* added) {
  with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        exponential_keys<Number, point>(map, count, space, value_stride, values, totals, largest, added);
      });
  if (map.map == PointMap::relu) plain_keys<Number, PointMap::relu>(map, count, space, added);
  if (map.map == PointMap::relu_token_weighted)
    plain_keys<Number, PointMap::relu_token_weighted>(map, count, space, added);
  if (map.map == PointMap::unit) plain_keys<Number, PointMap::unit>(map, count, space, added);
  clear_absent_keys<Number>(count, map.features(), space);
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
