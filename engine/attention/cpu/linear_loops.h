// The loops of normalised linear attention, for the processor that HYDRASCOPE_CPU names. Nothing here calls
// what is not inlined: a function of the standard library compiled for one processor might be taken for all.
#pragma once

#include "engine/attention/cpu/linear_variant.h"
#include "engine/attention/cpu/products.h"
#include "engine/attention/cpu/row_access.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Where a block's numbers lie in the buffers.
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
  float* of_row;   // (2,T): of softmaxes log Σ e^y and log Σ e^−y, of relu_turned a and b
  float* spare;    // a product's factors, in bfloat16
};

HYDRASCOPE_INLINE std::int64_t whole_rows(const std::int64_t rows) {
  return (rows + rows_at_once - 1) / rows_at_once * rows_at_once;
}

HYDRASCOPE_INLINE void clear(float* from, const std::int64_t count) {
  std::memset(from, 0, static_cast<std::size_t>(count) * sizeof(float));
}

// The block's rows one after another, of keys and values the real ones only, and rows of 0 up to a whole
// number of rows_at_once. How many there are without these.
HYDRASCOPE_INLINE std::int64_t gather(const Rows& rows, const unsigned char* mask, const TokenRange block,
                                      float* to) {
  const std::int64_t padded = padded_to_lanes(rows.head_width);
  if (padded != rows.head_width) clear(to, tokens_of_block * padded);
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

#ifdef __AVX512BF16__

// c (rows,stride) += a (rows,depth) · b (depth,stride); rows, depth whole.
HYDRASCOPE_INLINE void add_rows_times(const float* a, const std::int64_t rows, const std::int64_t depth,
                                      const float* b, const std::int64_t stride, float* c, float* spare) {
  auto* const left = reinterpret_cast<Pair*>(spare);
  Pair* const right = left + rows * depth / 2;
  for (std::int64_t i = 0; i < rows * depth; i += lane_count)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(left + i / 2),
                        __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(_mm512_loadu_ps(a + i))));
  to_pairs(b, depth, stride, right);
  add_product(LeftPairs{left, depth / 2, 1}, right, rows, depth, stride, c);
}

// c (columns,stride) += aᵀ · b for a (depth,columns), b (depth,stride); depth, columns whole.
HYDRASCOPE_INLINE void add_columns_times(const float* a, const std::int64_t depth, const std::int64_t columns,
                                         const float* b, const std::int64_t stride, float* c, float* spare) {
  auto* const left = reinterpret_cast<Pair*>(spare);
  Pair* const right = left + depth * columns / 2;
  to_pairs(a, depth, columns, left);
  to_pairs(b, depth, stride, right);
  add_product(LeftPairs{left, 1, columns}, right, columns, depth, stride, c);
}

#else

HYDRASCOPE_INLINE void add_rows_times(const float* a, const std::int64_t rows, const std::int64_t depth,
                                      const float* b, const std::int64_t stride, float* c, float*) {
  add_product(Left{a, depth, 1}, b, rows, depth, stride, c);
}

HYDRASCOPE_INLINE void add_columns_times(const float* a, const std::int64_t depth, const std::int64_t columns,
                                         const float* b, const std::int64_t stride, float* c, float*) {
  add_product(Left{a, 1, columns}, b, columns, depth, stride, c);
}

#endif

// y of the gathered rows, into space.y.
HYDRASCOPE_INLINE void make_outputs(const LinearMap& map, const std::int64_t count, const Space& space) {
  const std::int64_t padded = padded_to_lanes(map.head_width), width = padded_to_lanes(map.outputs);
  const std::int64_t rows = whole_rows(count);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t f = 0; f < width; f += lane_count) {
      const Lanes start = map.bias != nullptr ? load(map.bias + f) : Lanes{};
      store(space.y + row * width + f,
            map.weight != nullptr ? start : start + load(space.x + row * padded + f));
    }
  if (map.weight != nullptr) add_rows_times(space.x, rows, padded, map.weight, width, space.y, space.spare);
  if (map.scale == 1 && map.half_square == 0) return;
  for (std::int64_t row = 0; row < count; ++row) {
    Lanes squares{};
    for (std::int64_t f = 0; f < padded; f += lane_count) {
      const Lanes x = load(space.x + row * padded + f);
      squares += x * x;
    }
    const float shift = map.half_square * sum_of(squares);
    for (std::int64_t f = 0; f < width; f += lane_count)
      store(space.y + row * width + f, load(space.y + row * width + f) * map.scale - shift);
  }
}

// Which of sixteen features from f on there are.
HYDRASCOPE_INLINE WholeLanes present(const std::int64_t f, const std::int64_t outputs) {
  constexpr WholeLanes order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return order + static_cast<std::int32_t>(f) < static_cast<std::int32_t>(outputs);
}

constexpr bool is_softmax(const PointMap map) {
  return map == PointMap::softmax || map == PointMap::plus_minus_softmax || map == PointMap::joint_softmax;
}

// log Σ e^y of one row, or of −y, over what is present.
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

HYDRASCOPE_INLINE void make_turns(const LinearMap& map, const unsigned char* mask, const TokenRange block,
                                  const Space& space) {
  if (map.map != PointMap::relu_turned) return;
  std::int64_t row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    if (!real(mask, token)) continue;
    space.of_row[row] = map.turns[2 * token];
    space.of_row[tokens_of_block + row] = map.turns[2 * token + 1];
    ++row;
  }
}

// Calls use with the map as a constant of the loops, if its features are e^exponent · factor.
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

// A feature is e^exponent · factor. shift: the sign's own, of softmaxes.
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

// Sixteen features of all keys of a block, over the largest so far; what was summed over a smaller one
// shrinks.
template <PointMap map, bool negative>
HYDRASCOPE_INLINE void key_lanes(const float* y, const float* shifts, const std::int64_t count,
                                 const std::int64_t width, const WholeLanes& there, float* features,
                                 const std::int64_t stride, const std::int64_t value_stride, float* values,
                                 float* ones, float* largest) {
  const Lanes before = load(largest);
  Lanes top = before;
  for (std::int64_t row = 0; row < count; ++row)
    top = larger(exponent_of<map, negative>(load(y + row * width), shifts[row]), top);
  store(largest, top);
  const Lanes shrunk = exponential(before - top);
  Lanes total = load(ones);
  total = total == 0 ? total : total * shrunk; // without any key so far the exponent is no number
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
    total += kept;
  }
  store(ones, total);
}

template <PointMap map>
HYDRASCOPE_INLINE void exponential_keys(const LinearMap& whole, const std::int64_t count, const Space& space,
                                        const std::int64_t value_stride, float* values, float* ones,
                                        float* largest) {
  const std::int64_t width = padded_to_lanes(whole.outputs), stride = whole.features();
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    key_lanes<map, false>(space.y + f, space.of_row, count, width, there, space.features + f, stride,
                          value_stride, values + f * value_stride, ones + f, largest + f);
    if constexpr (has_two_halves(map)) {
      const std::int64_t second = width + f;
      key_lanes<map, true>(space.y + f, space.of_row + tokens_of_block, count, width, there,
                           space.features + second, stride, value_stride, values + second * value_stride,
                           ones + second, largest + second);
    }
  }
}

template <bool turned>
HYDRASCOPE_INLINE void relu_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                 float* ones) {
  const std::int64_t width = padded_to_lanes(map.outputs), stride = map.features();
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, map.outputs);
    Lanes total = load(ones + f), second_total = turned ? load(ones + width + f) : Lanes{};
    for (std::int64_t row = 0; row < count; ++row) {
      const Lanes positive = larger(load(space.y + row * width + f), Lanes{});
      Lanes kept = there ? positive : Lanes{};
      float* const to = space.features + row * stride + f;
      if constexpr (turned) {
        const Lanes second = kept * space.of_row[tokens_of_block + row];
        store(to + width, second);
        second_total += second;
        kept *= space.of_row[row];
      }
      store(to, kept);
      total += kept;
    }
    store(ones + f, total);
    if constexpr (turned) store(ones + width + f, second_total);
  }
}

// Calls use(i, first, width) for each part of taylor's features: i = −2 for the 1, −1 for y, else y_i · y_j
// for j from `first` on.
template <typename Use>
HYDRASCOPE_INLINE void taylor_parts(const LinearMap& map, const Use& use) {
  const std::int64_t width = padded_to_lanes(map.outputs);
  use(std::int64_t{-2}, std::int64_t{0}, lane_count);
  use(std::int64_t{-1}, std::int64_t{0}, width);
  for (std::int64_t i = 0; i < map.outputs; ++i) {
    const std::int64_t first = i / lane_count * lane_count;
    use(i, first, width - first);
  }
}

// One part of the features of `count` rows, rows of 0 up to `rows`; use(row, f, sixteen of them) for each.
template <typename Use>
HYDRASCOPE_INLINE void taylor_features(const LinearMap& map, const std::int64_t i, const std::int64_t first,
                                       const std::int64_t width, const std::int64_t count,
                                       const std::int64_t rows, const Space& space, const Use& use) {
  constexpr WholeLanes order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  constexpr Lanes one = {1};
  const std::int64_t stride = padded_to_lanes(map.outputs);
  const auto own = static_cast<std::int32_t>(i - first); // i's place in the first lanes
  const Lanes not_before = order == own ? all(0.70710678F) : (order > own ? all(1.0F) : Lanes{});
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const y = space.y + row * stride;
    for (std::int64_t f = 0; f < width; f += lane_count) {
      Lanes feature = i == -2 ? one : load(y + first + f);
      if (i >= 0) feature *= f == 0 ? not_before * y[i] : all(y[i]);
      store(space.features + row * width + f, feature);
      use(row, f, feature);
    }
  }
  clear(space.features + count * width, (rows - count) * width);
}

HYDRASCOPE_INLINE void taylor_keys(const LinearMap& map, const std::int64_t count, const Space& space,
                                   const std::int64_t value_stride, float* values, float* ones) {
  const std::int64_t rows = whole_rows(count);
  std::int64_t offset = 0;
  taylor_parts(
      map, [&](const std::int64_t i, const std::int64_t first,
               const std::int64_t width) __attribute__((always_inline)) {
        taylor_features(
            map, i, first, width, count, rows, space,
            [&](std::int64_t, const std::int64_t f, const Lanes& feature) __attribute__((always_inline)) {
              store(ones + offset + f, load(ones + offset + f) + feature);
            });
        add_columns_times(space.features, rows, width, space.values, value_stride,
                          values + offset * value_stride, space.spare);
        offset += width;
      });
}

// φ(q)·S into space.values, φ(q)·z into `denominators`.
HYDRASCOPE_INLINE void taylor_answers(const LinearMap& map, const std::int64_t count, const Space& space,
                                      const std::int64_t value_stride, const float* values, const float* ones,
                                      float* denominators) {
  const std::int64_t rows = whole_rows(count);
  Lanes products[tokens_of_block] = {};
  std::int64_t offset = 0;
  taylor_parts(
      map, [&](const std::int64_t i, const std::int64_t first,
               const std::int64_t width) __attribute__((always_inline)) {
        taylor_features(
            map, i, first, width, count, rows, space,
            [&](const std::int64_t row, const std::int64_t f, const Lanes& feature)
                __attribute__((always_inline)) { products[row] += feature * load(ones + offset + f); });
        add_rows_times(space.features, rows, width, values + offset * value_stride, value_stride,
                       space.values, space.spare);
        offset += width;
      });
  for (std::int64_t row = 0; row < count; ++row) denominators[row] = sum_of(products[row]);
}

void add_block(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange block,
               const LinearMap& map, float* buffers, float* values, float* ones, float* largest) {
  const Space space(map, v.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(v.head_width);
  const std::int64_t count = gather(k, mask, block, space.x);
  if (count == 0) return;
  gather(v, mask, block, space.values);
  make_outputs(map, count, space);
  make_shifts(map, count, space);
  make_turns(map, mask, block, space);
  if (map.map == PointMap::taylor) {
    taylor_keys(map, count, space, stride, values, ones);
    return;
  }
  const std::int64_t rows = whole_rows(count);
  clear(space.features + count * map.features(), (rows - count) * map.features());
  with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        exponential_keys<point>(map, count, space, stride, values, ones, largest);
      });
  if (map.map == PointMap::relu) relu_keys<false>(map, count, space, ones);
  if (map.map == PointMap::relu_turned) relu_keys<true>(map, count, space, ones);
  add_columns_times(space.features, rows, map.features(), space.values, stride, values, space.spare);
}

// A query's features over its largest, which cancels in the quotient; φ(q)·z.
template <PointMap map>
HYDRASCOPE_INLINE float query_features(const LinearMap& whole, const float* y, const float plus,
                                       const float minus, const float* ones, const float* largest,
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
    product += kept * load(ones + f);
  };
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const WholeLanes there = present(f, whole.outputs);
    const Lanes at = load(y + f);
    put(exponent_of<map, false>(at, plus) + load(largest + f), at, there, f);
    if constexpr (both)
      put(exponent_of<map, true>(at, minus) + load(largest + width + f), at, there, width + f);
  }
  return sum_of(product);
}

template <bool turned>
HYDRASCOPE_INLINE float relu_query(const LinearMap& map, const float* y, const float a, const float b,
                                   const float* ones, float* features) {
  const std::int64_t width = padded_to_lanes(map.outputs);
  Lanes product{};
  for (std::int64_t f = 0; f < width; f += lane_count) {
    const Lanes positive = larger(load(y + f), Lanes{});
    Lanes kept = present(f, map.outputs) ? positive : Lanes{};
    if constexpr (turned) {
      const Lanes second = kept * b;
      store(features + width + f, second);
      product += second * load(ones + width + f);
      kept *= a;
    }
    store(features + f, kept);
    product += kept * load(ones + f);
  }
  return sum_of(product);
}

HYDRASCOPE_INLINE float query_features(const LinearMap& map, const float* y, const float plus,
                                       const float minus, const float* ones, const float* largest,
                                       float* features) {
  float product = 0;
  const bool exponential = with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        product = query_features<point>(map, y, plus, minus, ones, largest, features);
      });
  if (exponential) return product;
  return map.map == PointMap::relu_turned ? relu_query<true>(map, y, plus, minus, ones, features)
                                          : relu_query<false>(map, y, plus, minus, ones, features);
}

std::int64_t answer_block(const Rows& q, const unsigned char* mask, const TokenRange block,
                          const LinearMap& map, const float* values, const float* ones, const float* largest,
                          float* buffers, const Rows& out) {
  const Space space(map, out.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(out.head_width), width = padded_to_lanes(map.outputs);
  const std::int64_t count = gather(q, mask, block, space.x), rows = whole_rows(count);
  make_outputs(map, count, space);
  make_shifts(map, count, space);
  make_turns(map, mask, block, space);
  float denominators[tokens_of_block];
  clear(space.values, rows * stride);
  if (map.map == PointMap::taylor) {
    taylor_answers(map, count, space, stride, values, ones, denominators);
  } else {
    for (std::int64_t row = 0; row < count; ++row)
      denominators[row] =
          query_features(map, space.y + row * width, space.of_row[row], space.of_row[tokens_of_block + row],
                         ones, largest, space.features + row * map.features());
    clear(space.features + count * map.features(), (rows - count) * map.features());
    add_rows_times(space.features, rows, map.features(), values, stride, space.values, space.spare);
  }
  std::int64_t zeros = 0, row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    float* result = space.x; // of a masked token 0, and x is used up
    if (real(mask, token)) {
      result = space.values + row * stride;
      const float denominator = denominators[row++];
      zeros += denominator == 0 ? 1 : 0;
      // Where it is 0 every product is 0, and with them the numerator.
      const Lanes divisor = all(denominator == 0 ? 1.0F : denominator);
      for (std::int64_t f = 0; f < stride; f += lane_count) store(result + f, load(result + f) / divisor);
    } else {
      clear(result, stride);
    }
    put_row(out, token, result);
  }
  return zeros;
}

constexpr LinearLoops loops{add_block, answer_block};

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
