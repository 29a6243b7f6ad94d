// y of a block's rows and what its features are made with, for the processor that HYDRASCOPE_CPU names. Used
// by linear_keys.h and linear_queries.h.
#pragma once

#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/simd/products.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// The parts of the buffers.
struct Space {
  Space(const LinearMap& map, const std::int64_t value_width, float* buffers)
      : x(buffers),
        y(x + tokens_of_block * padded_to_lanes(map.head_width)),
        features(y + tokens_of_block * padded_to_lanes(map.outputs)),
        values(features + tokens_of_block * map.features_at_once()),
        of_row(values + tokens_of_block * padded_to_lanes(value_width)),
        rows(of_row + 2 * tokens_of_block),
        weight(rows + 2 * widest(map, value_width)),
        sums(weight + padded_to_lanes(map.head_width) * padded_to_lanes(map.outputs)),
        spare(sums + map.features_at_once() * padded_to_lanes(value_width)) {}

  static std::int64_t widest(const LinearMap& map, const std::int64_t value_width) {
    return padded_to_lanes(map.head_width > value_width ? map.head_width : value_width);
  }

  // Factors of products are floats or, in half of their place, pairs of bfloat16 numbers.
  float* x;        // (T,d)
  float* y;        // (T,outputs)
  float* features; // (T,features at once)
  float* values;   // (T,d): v of keys, the result of queries
  float*
      of_row; // (2,T): log Σ e^y and log Σ e^−y of softmaxes, a and b of relu_token_weighted, 1/‖y‖ of unit
  float* rows;   // (2,d)
  float* weight; // (d,outputs): factors of W
  float* sums;   // (features at once,d): factors of S
  float* spare;  // (T,d): left factors of x
};

template <typename Number>
HYDRASCOPE_INLINE Number* as(float* place) {
  return reinterpret_cast<Number*>(place);
}

// e^exponent of a feature that becomes a Number.
template <typename Number>
HYDRASCOPE_INLINE Lanes feature_exponential(const Lanes& exponent) {
  return depth_of<Number> == 1 ? exponential(exponent) : rough_exponential(exponent);
}

// x where its indices from f on are below `count`, else `absent`. (Mostly all are.)
HYDRASCOPE_INLINE Lanes kept(const Lanes& x, const std::int64_t f, const std::int64_t count,
                             const Lanes& absent) {
  if (f + lane_count <= count) return x;
  return present(f, count) ? x : absent;
}

constexpr bool is_softmax(const PointMap map) {
  return map == PointMap::softmax || map == PointMap::plus_minus_softmax || map == PointMap::joint_softmax;
}

// Σ e^(y − largest) or Σ e^(−y − largest) over the entries of one row, and the largest.
struct ShiftedSum {
  float largest, sum;
};
template <typename Number, bool negative>
HYDRASCOPE_INLINE ShiftedSum shifted_sum(const float* y, const std::int64_t outputs) {
  Lanes top = all(-__builtin_inff());
  for (std::int64_t f = 0; f < outputs; f += lane_count) {
    const Lanes at = negative ? -load(y + f) : load(y + f);
    top = larger(kept(at, f, outputs, top), top);
  }
  const float largest = largest_of(top);
  Lanes sum{};
  for (std::int64_t f = 0; f < outputs; f += lane_count) {
    const Lanes at = negative ? -load(y + f) : load(y + f);
    sum += kept(feature_exponential<Number>(at - largest), f, outputs, Lanes{});
  }
  return {largest, sum_of(sum)};
}

// log Σ e^y and log Σ e^−y of each row into space.of_row, for softmaxes.
template <typename Number>
HYDRASCOPE_INLINE void make_shifts(const LinearMap& map, const std::int64_t count, const Space& space) {
  if (!is_softmax(map.map)) return;
  const std::int64_t width = padded_to_lanes(map.outputs);
  float *const plus = space.of_row, *const minus = space.of_row + tokens_of_block;
  float plus_sums[tokens_of_block] = {}, minus_sums[tokens_of_block] = {};
  for (std::int64_t row = 0; row < count; ++row) {
    const ShiftedSum of_plus = shifted_sum<Number, false>(space.y + row * width, map.outputs);
    const ShiftedSum of_minus =
        has_two_halves(map.map) ? shifted_sum<Number, true>(space.y + row * width, map.outputs) : of_plus;
    plus[row] = of_plus.largest;
    plus_sums[row] = of_plus.sum;
    minus[row] = of_minus.largest;
    minus_sums[row] = of_minus.sum;
  }
  // A logarithm of whole registers costs less than one of each row.
  for (std::int64_t row = 0; row < count; row += lane_count) {
    Lanes of_plus = load(plus + row) + logarithm(load(plus_sums + row)),
          of_minus = load(minus + row) + logarithm(load(minus_sums + row));
    if (map.map == PointMap::joint_softmax) {
      const Lanes top = larger(of_plus, of_minus), other = smaller(of_plus, of_minus);
      of_plus = of_minus = top + logarithm(1.0F + exponential(other - top));
    }
    store(plus + row, of_plus);
    store(minus + row, of_minus);
  }
}

// The factors of a row's features, for relu_token_weighted and unit.
HYDRASCOPE_INLINE void make_factors(const LinearMap& map, const unsigned char* mask, const TokenRange block,
                                    const std::int64_t count, const Space& space) {
  if (map.map == PointMap::unit) {
    const std::int64_t width = padded_to_lanes(map.outputs);
    for (std::int64_t row = 0; row < count; ++row) {
      Lanes squares{};
      for (std::int64_t f = 0; f < width; f += lane_count) {
        const Lanes y = load(space.y + row * width + f);
        squares += kept(y * y, f, map.outputs, Lanes{});
      }
      const float norm = __builtin_sqrtf(sum_of(squares));
      space.of_row[row] = 1 / (norm < 1e-12F ? 1e-12F : norm);
    }
  }
  if (map.map != PointMap::relu_token_weighted) return;
  std::int64_t row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    if (!real(mask, token)) continue;
    space.of_row[row] = map.token_weights[2 * token];
    space.of_row[tokens_of_block + row] = map.token_weights[2 * token + 1];
    ++row;
  }
}

// Calls use<map>() if the features are e^exponent · factor, so that the map is a constant of the loops.
template <typename Use>
HYDRASCOPE_INLINE void with_exponential_map(const PointMap map, const Use& use) {
  switch (map) {
    case PointMap::plus_minus_exponential: use.template operator()<PointMap::plus_minus_exponential>(); break;
    case PointMap::exponential: use.template operator()<PointMap::exponential>(); break;
    case PointMap::softmax: use.template operator()<PointMap::softmax>(); break;
    case PointMap::plus_minus_softmax: use.template operator()<PointMap::plus_minus_softmax>(); break;
    case PointMap::joint_softmax: use.template operator()<PointMap::joint_softmax>(); break;
    case PointMap::one_plus_elu: use.template operator()<PointMap::one_plus_elu>(); break;
    default: break;
  }
}

// A feature is e^exponent · factor. shift: log Σ e^±y of softmaxes.
template <PointMap map, bool negative>
HYDRASCOPE_INLINE Lanes exponent_of(const Lanes& y, const float shift) {
  if constexpr (map == PointMap::one_plus_elu) return y < 0 ? y : Lanes{};
  const Lanes x = negative ? -y : y;
  if constexpr (is_softmax(map)) return x - shift;
  return x;
}
template <PointMap map>
HYDRASCOPE_INLINE Lanes times_factor(const Lanes& power, const Lanes& y) {
  if constexpr (map == PointMap::one_plus_elu) return y > 0 ? power * (1.0F + y) : power;
  return power;
}

// A register of features of relu and unit, and of relu_token_weighted before its factors.
template <PointMap map>
HYDRASCOPE_INLINE Lanes plain_feature(const Lanes& y, const float factor) {
  return map == PointMap::unit ? y * factor : larger(y, Lanes{});
}

// half_square · ‖x‖².
template <typename Number>
HYDRASCOPE_INLINE float shift_of(const LinearMap& map, const Number* x, const std::int64_t padded) {
  if (map.half_square == 0) return 0;
  Lanes squares{};
  for (std::int64_t f = 0; f < padded; f += lane_count) {
    const Lanes at = load(x + f);
    squares += at * at;
  }
  return map.half_square * sum_of(squares);
}

// y of the block's real rows without W, into space.y. Returns their number.
template <typename Between>
HYDRASCOPE_INLINE std::int64_t scale_rows(const Rows& from, const unsigned char* mask, const TokenRange block,
                                          const LinearMap& map, const Space& space, Between between) {
  const std::int64_t width = padded_to_lanes(map.head_width);
  clear(space.x, width); // row_of() leaves what is beyond a row
  std::int64_t count = 0;
  const auto scale = [&](const auto* x) __attribute__((always_inline)) {
    const float shift = shift_of(map, x, width);
    float* const y = space.y + count * width;
    for (std::int64_t f = 0; f < width; f += lane_count) {
      Lanes sum = load(x + f);
      if (map.bias != nullptr) sum += load(map.bias + f);
      store(y + f, sum * map.scale - shift);
    }
  };
  for (std::int64_t token = block.first; token < block.last; ++token) {
    if (token % rows_at_once == 0) between();
    if (!real(mask, token)) continue;
    if (from.element == Element::bfloat16 && from.head_width == width)
      scale(static_cast<const std::uint16_t*>(from.data) + token * from.token_stride);
    else
      scale(row_of(from, token, space.x));
    ++count;
  }
  return count;
}

// Computes y of the block's real rows into space.y. weight: factors of W; null: W = I. Returns their number.
template <typename Number, typename Between = NoPrefetch>
HYDRASCOPE_INLINE std::int64_t make_outputs(const Rows& from, const unsigned char* mask,
                                            const TokenRange block, const LinearMap& map,
                                            const Number* weight, const Space& space, Between between = {}) {
  if (weight == nullptr) return scale_rows(from, mask, block, map, space, between);
  const std::int64_t padded = padded_to_lanes(map.head_width), width = padded_to_lanes(map.outputs);
  std::int64_t count = 0, rows = 0;
  const auto multiply = [&](const Number* x, const std::int64_t x_stride) __attribute__((always_inline)) {
    const Left<Number> left{x, x_stride, 1};
    const std::int64_t depth = padded / depth_of<Number>;
    if (map.bias == nullptr)
      make_product<Start::zero>(left, weight, rows, depth, width, space.y, between);
    else
      make_product<Start::row>(left, weight, rows, depth, width, space.y, between, map.bias);
  };
  if (map.half_square == 0) { // the rows are needed for the product alone
    if (const Number* const x = rows_in_place<Number>(from, mask, block)) {
      count = rows = block.last - block.first;
      multiply(x, from.token_stride / depth_of<Number>);
    } else {
      auto* const gathered = as<Number>(space.x);
      count = gather_factors<Side::left>(from, mask, block, gathered, space.rows);
      rows = whole_rows(count);
      multiply(gathered, padded / depth_of<Number>);
    }
    if (map.scale == 1) return count;
  } else {
    count = gather(from, mask, block, space.x);
    rows = whole_rows(count);
    multiply(left_factors(space.x, rows, padded, as<Number>(space.spare)), padded / depth_of<Number>);
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const float shift = shift_of(map, space.x + row * padded, padded);
    float* const y = space.y + row * width;
    for (std::int64_t f = 0; f < width; f += lane_count) store(y + f, load(y + f) * map.scale - shift);
  }
  return count;
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
