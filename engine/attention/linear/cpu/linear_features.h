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
        spare(of_row + 2 * tokens_of_block) {}

  float* x;        // (T,d)
  float* y;        // (T,outputs)
  float* features; // (T,features at once)
  float* values;   // (T,d): v of keys, the result of queries
  float*
      of_row; // (2,T): log Σ e^y and log Σ e^−y of softmaxes, a and b of relu_token_weighted, 1/‖y‖ of unit
  float* spare; // the factors of a product, in bfloat16
};

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

// A register of features of all keys of a block, divided by e^the largest so far. Rescales the sums when the
// largest grows. Adds the features to `added`, which may be `totals`.
template <PointMap map, bool negative>
HYDRASCOPE_INLINE void key_lanes(const float* y, const float* shifts, const std::int64_t count,
                                 const std::int64_t width, const WholeLanes& there, float* features,
                                 const std::int64_t stride, const std::int64_t value_stride, float* values,
                                 float* totals, float* largest, float* added) {
  const Lanes before = load(largest);
  Lanes top = before;
  for (std::int64_t row = 0; row < count; ++row)
    top = larger(exponent_of<map, negative>(load(y + row * width), shifts[row]), top);
  store(largest, top);
  const Lanes shrunk = exponential(before - top);
  const Lanes total = load(totals);
  store(totals, total == 0 ? total : total * shrunk); // without a key so far `shrunk` is NaN
  Lanes sum = load(added);
  for (std::int64_t i = 0; i < lane_count; ++i) {
    if (!(before[i] < top[i])) continue;
    float* const row = values + i * value_stride;
    for (std::int64_t f = 0; f < value_stride; f += lane_count) store(row + f, load(row + f) * shrunk[i]);
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const Lanes at = load(y + row * width);
    const Lanes feature =
        times_factor<map>(exponential(exponent_of<map, negative>(at, shifts[row]) - top), at);
    const Lanes kept = there ? feature : Lanes{};
    store(features + row * stride, kept);
    sum += kept;
  }
  store(added, sum);
}

template <PointMap map>
HYDRASCOPE_INLINE void exponential_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                        const std::int64_t value_stride, float* values, float* totals,
                                        float* largest, float* added) {
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    key_lanes<map, false>(space.y + f, space.of_row, count, width, there, space.features + f, stride,
                          value_stride, values + f * value_stride, totals + f, largest + f, added + f);
    if constexpr (has_two_halves(map)) {
      const std::int64_t second = width + f;
      key_lanes<map, true>(space.y + f, space.of_row + tokens_of_block, count, width, there,
                           space.features + second, stride, value_stride, values + second * value_stride,
                           totals + second, largest + second, added + second);
    }
  }
}

// A register of features of relu and unit, and of relu_token_weighted before its factors.
template <PointMap map>
HYDRASCOPE_INLINE Lanes plain_feature(const Lanes& y, const float factor, const WholeLanes& there) {
  const Lanes feature = map == PointMap::unit ? y * factor : larger(y, Lanes{});
  return there ? feature : Lanes{};
}

template <PointMap map>
HYDRASCOPE_INLINE void plain_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                  float* totals) {
  constexpr bool weighted = map == PointMap::relu_token_weighted;
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    Lanes total = load(totals + f), second_total = weighted ? load(totals + width + f) : Lanes{};
    for (std::int64_t row = 0; row < count; ++row) {
      Lanes kept = plain_feature<map>(load(space.y + row * width + f), space.of_row[row], there);
      float* const to = space.features + row * stride + f;
      if constexpr (weighted) {
        const Lanes second = kept * space.of_row[tokens_of_block + row];
        store(to + width, second);
        second_total += second;
        kept *= space.of_row[row];
      }
      store(to, kept);
      total += kept;
    }
    store(totals + f, total);
    if constexpr (weighted) store(totals + width + f, second_total);
  }
}

// Of the maps without an exponential, except taylor.
HYDRASCOPE_INLINE void plain_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                  float* totals) {
  if (map.map == PointMap::relu) plain_keys<PointMap::relu>(map, count, space, totals);
  if (map.map == PointMap::relu_token_weighted)
    plain_keys<PointMap::relu_token_weighted>(map, count, space, totals);
  if (map.map == PointMap::unit) plain_keys<PointMap::unit>(map, count, space, totals);
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

HYDRASCOPE_INLINE void taylor_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                   const std::int64_t value_stride, float* values, float* totals) {
  taylor_parts(
      map, [&](const TaylorPart& part) __attribute__((always_inline)) {
        float* const total = totals + part.offset;
        taylor_features(
            map, part, count, space,
            [&](std::int64_t, const std::int64_t f, const Lanes& feature)
                __attribute__((always_inline)) { store(total + f, load(total + f) + feature); });
        add_columns_times(space.features, whole_rows(count), part.width, space.values, value_stride,
                          values + part.offset * value_stride, space.spare);
      });
}

// Computes φ(q)·S into space.values and φ(q)·z into `denominators`.
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
        add_rows_times(space.features, whole_rows(count), part.width, values + part.offset * value_stride,
                       value_stride, space.values, space.spare);
      });
  for (std::int64_t row = 0; row < count; ++row) denominators[row] = sum_of(products[row]);
}

// φ(q)·z of a query, and the log-feature that its features and this are divided by.
struct QueryProduct {
  float product = 0, reference = 0;
};

// Computes a query's features divided by its largest, which cancels in the quotient.
template <PointMap map>
HYDRASCOPE_INLINE QueryProduct query_features(const LinearMap& whole, const float* y, const float plus,
                                              const float minus, const float* totals, const float* largest,
                                              float* features) {
  const std::int64_t width = padded_to_lanes(whole.outputs);
  constexpr bool both = has_two_halves(map);
  Lanes top = all(-__builtin_inff());
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const Lanes at = load(y + f);
    const Lanes upper = exponent_of<map, false>(at, plus) + load(largest + f);
    Lanes greater = upper;
    if constexpr (both)
      greater = larger(exponent_of<map, true>(at, minus) + load(largest + width + f), upper);
    top = larger(present(f, whole.outputs) ? greater : top, top);
  }
  const Lanes shift = all(largest_of(top));
  Lanes product{};
  const auto put = [&](const Lanes& exponent, const Lanes& at, const WholeLanes& there, const std::int64_t f)
      __attribute__((always_inline)) {
    const Lanes feature = times_factor<map>(exponential(exponent - shift), at);
    const Lanes kept = there ? feature : Lanes{};
    store(features + f, kept);
    product += kept * load(totals + f);
  };
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    const Lanes at = load(y + f);
    put(exponent_of<map, false>(at, plus) + load(largest + f), at, there, f);
    if constexpr (both)
      put(exponent_of<map, true>(at, minus) + load(largest + width + f), at, there, width + f);
  }
  return {sum_of(product), shift[0]};
}

template <PointMap map>
HYDRASCOPE_INLINE QueryProduct plain_query(const LinearMap& whole, const float* y, const float a,
                                           const float b, const float* totals, float* features) {
  const std::int64_t width = padded_to_lanes(whole.outputs);
  Lanes product{};
  for (std::int64_t f = 0; f < width; f += lane_count) {
    Lanes kept = plain_feature<map>(load(y + f), a, present(f, whole.outputs));
    if constexpr (map == PointMap::relu_token_weighted) {
      const Lanes second = kept * b;
      store(features + width + f, second);
      product += second * load(totals + width + f);
      kept *= a;
    }
    store(features + f, kept);
    product += kept * load(totals + f);
  }
  return {sum_of(product), 0};
}

HYDRASCOPE_INLINE QueryProduct query_features(const LinearMap& map, const float* y, const float plus,
                                              const float minus, const float* totals, const float* largest,
                                              float* features) {
  QueryProduct product;
  const bool exponential = with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        product = query_features<point>(map, y, plus, minus, totals, largest, features);
      });
  if (exponential) return product;
  switch (map.map) {
    case PointMap::unit: return plain_query<PointMap::unit>(map, y, plus, minus, totals, features);
    case PointMap::relu_token_weighted:
      return plain_query<PointMap::relu_token_weighted>(map, y, plus, minus, totals, features);
    default: return plain_query<PointMap::relu>(map, y, plus, minus, totals, features);
  }
}

// Computes φ(q)·S of `count` queries into space.values, each row divided by one number that cancels in the
// quotient, and φ(q)·z and that number's logarithm into `products`.
HYDRASCOPE_INLINE void earlier_outputs(const LinearMap& map, const std::int64_t count, const Space& space,
                                       const std::int64_t stride, const float* values, const float* totals,
                                       const float* largest, QueryProduct* products) {
  const std::int64_t rows = whole_rows(count), width = padded_to_lanes(map.outputs);
  clear(space.values, rows * stride);
  if (map.map == PointMap::taylor) {
    float denominators[tokens_of_block];
    taylor_outputs(map, count, space, stride, values, totals, denominators);
    for (std::int64_t row = 0; row < count; ++row) products[row] = {denominators[row], 0};
    return;
  }
  for (std::int64_t row = 0; row < count; ++row)
    products[row] =
        query_features(map, space.y + row * width, space.of_row[row], space.of_row[tokens_of_block + row],
                       totals, largest, space.features + row * map.features());
  clear(space.features + count * map.features(), (rows - count) * map.features());
  add_rows_times(space.features, rows, map.features(), values, stride, space.values, space.spare);
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
      for (std::int64_t f = 0; f < stride; f += lane_count) store(result + f, load(result + f) / divisor);
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
