// φ of a block's queries and keys from y, for the processor that HYDRASCOPE_CPU names. Called by
// linear_loops.cpp.
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
// Returns whether they are.
template <typename Use>
HYDRASCOPE_INLINE bool with_exponential_map(const PointMap map, const Use& use) {
  switch (map) {
    case PointMap::plus_minus_exponential: use.template operator()<PointMap::plus_minus_exponential>(); break;
    case PointMap::exponential: use.template operator()<PointMap::exponential>(); break;
    case PointMap::softmax: use.template operator()<PointMap::softmax>(); break;
    case PointMap::plus_minus_softmax: use.template operator()<PointMap::plus_minus_softmax>(); break;
    case PointMap::joint_softmax: use.template operator()<PointMap::joint_softmax>(); break;
    case PointMap::one_plus_elu: use.template operator()<PointMap::one_plus_elu>(); break;
    default: return false;
  }
  return true;
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

template <typename Number, PointMap map>
HYDRASCOPE_INLINE void exponential_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                        const std::int64_t value_stride, float* values, float* totals,
                                        float* largest, float* added) {
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  const float* const shifts = space.of_row;
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    const float* const y = space.y + f;
    Number* const features = as<Number>(space.features) + f;
    const Lanes top = take_largest<map, false>(y, shifts, count, width, value_stride,
                                               values + f * value_stride, totals + f, largest + f);
    const auto of_half = [&]<bool negative>(const std::int64_t row, const Lanes& largest_one)
        __attribute__((always_inline)) {
      const Lanes at = load(y + row * width);
      const float shift = shifts[negative ? tokens_of_block + row : row];
      const Lanes feature = times_factor<map>(
          feature_exponential<Number>(exponent_of<map, negative>(at, shift) - largest_one), at);
      return there ? feature : Lanes{};
    };
    put_keys(
        count, features, stride, added + f, [&](const std::int64_t row) __attribute__((always_inline)) {
          return of_half.template operator()<false>(row, top);
        });
    if constexpr (has_two_halves(map)) {
      const std::int64_t second = width + f;
      const Lanes second_top =
          take_largest<map, true>(y, shifts + tokens_of_block, count, width, value_stride,
                                  values + second * value_stride, totals + second, largest + second);
      put_keys(
          count, features + width, stride,
          added + second, [&](const std::int64_t row) __attribute__((always_inline)) {
            return of_half.template operator()<true>(row, second_top);
          });
    }
  }
}

// A register of features of relu and unit, and of relu_token_weighted before its factors.
template <PointMap map>
HYDRASCOPE_INLINE Lanes plain_feature(const Lanes& y, const float factor, const WholeLanes& there) {
  const Lanes feature = map == PointMap::unit ? y * factor : larger(y, Lanes{});
  return there ? feature : Lanes{};
}

template <typename Number, PointMap map>
HYDRASCOPE_INLINE void plain_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                  float* totals) {
  constexpr bool weighted = map == PointMap::relu_token_weighted;
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  auto* const features = as<Number>(space.features);
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    Lanes total = load(totals + f), second_total = weighted ? load(totals + width + f) : Lanes{};
    for (std::int64_t row = 0; row < count; row += 2) {
      Lanes kept[2] = {}, seconds[2] = {};
      for (std::int64_t i = 0; i < 2 && row + i < count; ++i) {
        const std::int64_t at = row + i;
        kept[i] = plain_feature<map>(load(space.y + at * width + f), space.of_row[at], there);
        if constexpr (weighted) {
          seconds[i] = kept[i] * space.of_row[tokens_of_block + at];
          second_total += seconds[i];
          kept[i] *= space.of_row[at];
        }
        total += kept[i];
      }
      store_right(features, row, stride, f, kept[0], kept[1]);
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
  const std::int64_t done = (count + 1) / 2 * 2; // they are made by two
  clear(space.features + done * map.features() / depth_of<Number>,
        (whole_rows(count) - done) * map.features() / depth_of<Number>);
}

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
      top = larger(present(f, whole.outputs) ? greater : top, top);
    }
    products[row].reference = largest_of(top);
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const y = space.y + row * width;
    auto* const features = as<Number>(space.features + row * whole.features() / depth_of<Number>);
    const float plus = space.of_row[row], minus = space.of_row[tokens_of_block + row];
    const Lanes shift = all(products[row].reference);
    Lanes product{};
    const auto put = [&](const Lanes& exponent, const Lanes& at, const WholeLanes& there,
                         const std::int64_t f) __attribute__((always_inline)) {
      const Lanes feature = times_factor<map>(feature_exponential<Number>(exponent - shift), at);
      const Lanes kept = there ? feature : Lanes{};
      store_left(features, f, kept);
      product += kept * load(totals + f);
    };
    for (std::int64_t f = 0; f < width; f += lane_count) {
      const WholeLanes there = present(f, whole.outputs);
      const Lanes at = load(y + f);
      put(exponent_of<map, false>(at, plus) + load(largest + f), at, there, f);
      if constexpr (both)
        put(exponent_of<map, true>(at, minus) + load(largest + width + f), at, there, width + f);
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
      Lanes kept = plain_feature<map>(load(space.y + row * width + f), a, present(f, whole.outputs));
      if constexpr (map == PointMap::relu_token_weighted) {
        const Lanes second = kept * b;
        store_left(features, width + f, second);
        product += second * load(totals + width + f);
        kept *= a;
      }
      store_left(features, f, kept);
      product += kept * load(totals + f);
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

// Writes the block's outputs: the rows of space.values divided by the products or, with map.sums, as they
// are, with the products beside them; 0 where masked. Returns the number of products that are 0.
HYDRASCOPE_INLINE std::int64_t put_outputs(const unsigned char* mask, const TokenRange block,
                                           const LinearMap& map, const QueryProduct* products,
                                           const Space& space, const Rows& out) {
  const std::int64_t stride = padded_to_lanes(out.head_width);
  std::int64_t zeros = 0, row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    float* result = space.x; // 0 for a masked token; x is no longer needed
    QueryProduct product{0, -__builtin_inff()};
    if (real(mask, token)) {
      result = space.values + row * stride;
      product = products[row];
      ++row;
      const float denominator = map.normalised ? product.product : 1;
      zeros += denominator == 0 ? 1 : 0;
      // Where the denominator is 0, every product is 0, and the numerator with them.
      const Lanes divisor = all(denominator == 0 || map.sums != nullptr ? 1.0F : denominator);
      const Lanes factor = 1.0F / divisor;
      for (std::int64_t f = 0; f < stride; f += lane_count) store(result + f, load(result + f) * factor);
    } else {
      clear(result, stride);
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
