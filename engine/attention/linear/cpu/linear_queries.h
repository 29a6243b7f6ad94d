// φ of a block's queries from y, and the outputs, for the processor that HYDRASCOPE_CPU names.
#pragma once

#include "engine/attention/linear/cpu/linear_taylor.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// φ(q)·z of a query, and the log-feature that its features and this are divided by.
struct QueryProduct {
  float product = 0, reference = 0;
};

// Computes the features of `count` queries, each row divided by its largest, which cancels in the quotient.
template <typename Number, PointMap map>
HYDRASCOPE_INLINE void exponential_queries(const LinearMap& whole, const std::int64_t count,
                                           const Space& space, const float* totals, const float* largest,
                                           QueryProduct* products) {
  const std::int64_t width = padded_to_lanes(whole.outputs);
  constexpr bool both = has_two_halves(map);
  // The largest of all rows first: the processor overlaps the rows, but not a row's two loops.
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const y = space.y + row * width;
    const float plus = space.of_row[row], minus = space.of_row[tokens_of_block + row];
    Lanes top = all(-__builtin_inff());
    for (std::int64_t f = 0; f < width; f += lane_count) {
      const Lanes at = load(y + f);
      const Lanes upper = exponent_of<map, false>(at, plus) + load(largest + f);
      Lanes greater = upper;
      if constexpr (both)
        greater = larger(exponent_of<map, true>(at, minus) + load(largest + width + f), upper);
      top = larger(kept(greater, f, whole.outputs, top), top);
    }
    products[row].reference = largest_of(top);
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const y = space.y + row * width;
    auto* const features = as<Number>(space.features + row * whole.features() / depth_of<Number>);
    const float plus = space.of_row[row], minus = space.of_row[tokens_of_block + row];
    const Lanes shift = all(products[row].reference);
    Lanes product{};
    const auto put = [&](const Lanes& exponent, const Lanes& at, const std::int64_t f,
                         const std::int64_t offset) __attribute__((always_inline)) {
      const Lanes power = times_factor<map>(feature_exponential<Number>(exponent - shift), at);
      const Lanes feature = kept(power, f, whole.outputs, Lanes{});
      store_left(features, offset + f, feature);
      product += feature * load(totals + offset + f);
    };
    for (std::int64_t f = 0; f < width; f += lane_count) {
      const Lanes at = load(y + f);
      put(exponent_of<map, false>(at, plus) + load(largest + f), at, f, 0);
      if constexpr (both) put(exponent_of<map, true>(at, minus) + load(largest + width + f), at, f, width);
    }
    products[row].product = sum_of(product);
  }
}

template <typename Number, PointMap map>
HYDRASCOPE_INLINE void plain_queries(const LinearMap& whole, const std::int64_t count, const Space& space,
                                     const float* totals, QueryProduct* products) {
  const std::int64_t width = padded_to_lanes(whole.outputs);
  for (std::int64_t row = 0; row < count; ++row) {
    auto* const features = as<Number>(space.features + row * whole.features() / depth_of<Number>);
    const float a = space.of_row[row], b = space.of_row[tokens_of_block + row];
    Lanes product{};
    for (std::int64_t f = 0; f < width; f += lane_count) {
      Lanes feature = kept(plain_feature<map>(load(space.y + row * width + f), a), f, whole.outputs, Lanes{});
      if constexpr (map == PointMap::relu_token_weighted) {
        const Lanes second = feature * b;
        store_left(features, width + f, second);
        product += second * load(totals + width + f);
        feature *= a;
      }
      store_left(features, f, feature);
      product += feature * load(totals + f);
    }
    products[row] = {sum_of(product), 0};
  }
}

// Of all maps except taylor.
template <typename Number>
HYDRASCOPE_INLINE void query_features(const LinearMap& map, const std::int64_t count, const Space& space,
                                      const float* totals, const float* largest, QueryProduct* products) {
  with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        exponential_queries<Number, point>(map, count, space, totals, largest, products);
      });
  if (map.map == PointMap::relu) plain_queries<Number, PointMap::relu>(map, count, space, totals, products);
  if (map.map == PointMap::relu_token_weighted)
    plain_queries<Number, PointMap::relu_token_weighted>(map, count, space, totals, products);
  if (map.map == PointMap::unit) plain_queries<Number, PointMap::unit>(map, count, space, totals, products);
}

// Computes φ(q)·S of `count` queries, from the sums and, except for taylor, their factors, into space.values,
// each row divided by one number that cancels in the quotient, and φ(q)·z and that number's logarithm into
// `products`.
template <typename Number, typename Between = NoPrefetch>
HYDRASCOPE_INLINE void earlier_outputs(const LinearMap& map, const std::int64_t count, const Space& space,
                                       const std::int64_t stride, const float* values,
                                       const Number* value_factors, const float* totals, const float* largest,
                                       QueryProduct* products, Between between = {}) {
  const std::int64_t rows = whole_rows(count);
  if (map.map == PointMap::taylor) {
    clear(space.values, rows * stride);
    float denominators[tokens_of_block];
    taylor_outputs<Number>(map, count, space, stride, values, totals, denominators);
    for (std::int64_t row = 0; row < count; ++row) products[row] = {denominators[row], 0};
    return;
  }
  query_features<Number>(map, count, space, totals, largest, products);
  clear(space.features + count * map.features() / depth_of<Number>,
        (rows - count) * map.features() / depth_of<Number>);
  rows_times<Start::zero>(as<const Number>(space.features), rows, map.features(), value_factors, stride,
                          space.values, between);
}

// to = from / divisor. Divisions of whole registers take several times as long as products; they are needed
// only where the reciprocal is 0, subnormal or not finite.
HYDRASCOPE_INLINE void divide(const float* from, const float divisor, const std::int64_t count, float* to) {
  const float factor = 1 / divisor;
  if (__builtin_isnormal(factor)) {
    for (std::int64_t f = 0; f < count; f += lane_count) store(to + f, load(from + f) * factor);
  } else {
    for (std::int64_t f = 0; f < count; f += lane_count) store(to + f, load(from + f) / divisor);
  }
}

// Writes the block's outputs: the rows of space.values divided by the products or, with map.sums, as they
// are, with the products beside them; 0 where masked. Returns the number of products that are 0.
HYDRASCOPE_INLINE std::int64_t put_outputs(const unsigned char* mask, const TokenRange block,
                                           const LinearMap& map, const QueryProduct* products,
                                           const Space& space, const Rows& out) {
  const std::int64_t stride = padded_to_lanes(out.head_width);
  std::int64_t zeros = 0, row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    float* const result = place_of(out, token, space.x); // x is no longer needed
    QueryProduct product{0, -__builtin_inff()};
    if (real(mask, token)) {
      const float* const numerator = space.values + row * stride;
      product = products[row];
      ++row;
      const float denominator = map.normalised ? product.product : 1;
      zeros += denominator == 0 ? 1 : 0;
      // Where the denominator is 0, every product is 0, and the numerator with them.
      divide(numerator, denominator == 0 || map.sums != nullptr ? 1 : denominator, stride, result);
    } else {
      clear(result, stride); // 0 for a masked token
    }
    if (map.sums != nullptr) {
      map.sums[2 * token] = product.product;
      map.sums[2 * token + 1] = product.reference;
    }
    put_row(out, token, result);
  }
  return zeros;
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
