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
  float* spare;  // (T,features at once or d): factors of floats
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

constexpr bool is_softmax(const PointMap map) {
  return map == PointMap::softmax || map == PointMap::plus_minus_softmax || map == PointMap::joint_softmax;
}

// log Σ e^y or log Σ e^−y over the entries of one row.
template <bool negative>
HYDRASCOPE_INLINE float log_sum(const float* y, const std::int64_t outputs) {
  Lanes top = all(-__builtin_inff());
  for (std::int64_t f = 0; f < outputs; f += lane_count) {
    const Lanes at = negative ? -load(y + f) : load(y + f);
    top = larger(present(f, outputs) ? at : top, top);
  }
  const float largest = largest_of(top);
  Lanes sum{};
  for (std::int64_t f = 0; f < outputs; f += lane_count) {
    const Lanes at = negative ? -load(y + f) : load(y + f);
    const Lanes power = exponential(at - largest);
    sum += present(f, outputs) ? power : Lanes{};
  }
  return largest + __builtin_logf(sum_of(sum));
}

HYDRASCOPE_INLINE void make_shifts(const LinearMap& map, const std::int64_t count, const Space& space) {
  if (!is_softmax(map.map)) return;
  const std::int64_t width = padded_to_lanes(map.outputs);
  for (std::int64_t row = 0; row < count; ++row) {
    float plus = log_sum<false>(space.y + row * width, map.outputs);
    float minus = plus;
    if (has_two_halves(map.map)) minus = log_sum<true>(space.y + row * width, map.outputs);
    if (map.map == PointMap::joint_softmax) {
      const float larger_one = plus > minus ? plus : minus, other = plus > minus ? minus : plus;
      plus = minus = larger_one + __builtin_logf(1 + __builtin_expf(other - larger_one));
    }
    space.of_row[row] = plus;
    space.of_row[tokens_of_block + row] = minus;
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
        squares += present(f, map.outputs) ? y * y : Lanes{};
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
HYDRASCOPE_INLINE Lanes plain_feature(const Lanes& y, const float factor, const WholeLanes& there) {
  const Lanes feature = map == PointMap::unit ? y * factor : larger(y, Lanes{});
  return there ? feature : Lanes{};
}

// Gathers the block's real rows and computes their y into space.y. weight: factors of W. Returns their
// number.
template <typename Number, typename Between = NoPrefetch>
HYDRASCOPE_INLINE std::int64_t make_outputs(const Rows& from, const unsigned char* mask,
                                            const TokenRange block, const LinearMap& map,
                                            const Number* weight, const Space& space, Between between = {}) {
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
  if (map.weight != nullptr && map.half_square == 0) { // the rows are needed for the product alone
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
    if (map.weight != nullptr)
      multiply(left_factors(space.x, rows, padded, as<Number>(space.spare)), padded / depth_of<Number>);
  }
  const float* const product = map.weight != nullptr ? space.y : space.x; // as wide as y
  for (std::int64_t row = 0; row < rows; ++row) {
    float shift = 0;
    if (map.half_square != 0) {
      Lanes squares{};
      for (std::int64_t f = 0; f < padded; f += lane_count) {
        const Lanes x = load(space.x + row * padded + f);
        squares += x * x;
      }
      shift = map.half_square * sum_of(squares);
    }
    for (std::int64_t f = 0; f < width; f += lane_count) {
      Lanes y = load(product + row * width + f);
      if (map.weight == nullptr && map.bias != nullptr) y += load(map.bias + f);
      store(space.y + row * width + f, y * map.scale - shift);
    }
  }
  return count;
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
