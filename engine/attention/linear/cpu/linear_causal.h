// The causal form of a block of tokens, for the processor that HYDRASCOPE_CPU names: the sums over the keys
// before the block give one part of its outputs, products of its queries and keys the other. Called by
// linear_loops.cpp.
#pragma once

#include "engine/attention/linear/cpu/linear_keys.h"
#include "engine/attention/linear/cpu/linear_queries.h"
#include "engine/attention/linear/cpu/linear_taylor.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// The keys of a block beside their Space.
struct CausalSpace {
  CausalSpace(const LinearMap& map, const std::int64_t value_width, float* buffers)
      : space(map, value_width, buffers + map.features() + map.turned_rows() * tokens_of_block),
        added(buffers),
        turned(added + map.features()) {}

  Space space;
  float* added;  // (features): the sum of the block's features
  float* turned; // (features or, of taylor, outputs; T): the features, or y, of each token in a column
};

// to (columns,T) = fromᵀ for from (rows,columns), a tile at a time; columns of absent rows are 0.
HYDRASCOPE_INLINE void turn(float* from, const std::int64_t rows, const std::int64_t columns, float* to) {
  const std::int64_t whole = padded_to_lanes(rows);
  clear(from + rows * columns, (whole - rows) * columns);
  for (std::int64_t row = 0; row < whole; row += lane_count)
    for (std::int64_t f = 0; f < columns; f += lane_count)
      transpose_tile(from + row * columns + f, columns, to + f * tokens_of_block + row, tokens_of_block);
}

// How much the largest log-feature grows after the block's first key, at most over all features.
template <PointMap map, bool negative>
HYDRASCOPE_INLINE Lanes growth_of(const float* y, const float* shifts, const std::int64_t count,
                                  const std::int64_t width, const Lanes& before) {
  const Lanes first = larger(exponent_of<map, negative>(load(y), shifts[0]), before);
  Lanes top = first;
  for (std::int64_t row = 1; row < count; ++row)
    top = larger(exponent_of<map, negative>(load(y + row * width), shifts[row]), top);
  return top - first;
}

template <PointMap map>
HYDRASCOPE_INLINE float largest_growth(const LinearMap& whole, const std::int64_t count, const Space& space,
                                       const float* largest) {
  const std::int64_t width = padded_to_lanes(whole.outputs);
  Lanes growth{};
  const auto take = [&](const Lanes& own, const std::int64_t f) __attribute__((always_inline)) {
    growth = larger(present(f, whole.outputs) ? own : growth, growth);
  };
  for (std::int64_t f = 0; f < width; f += lane_count) {
    take(growth_of<map, false>(space.y + f, space.of_row, count, width, load(largest + f)), f);
    if constexpr (has_two_halves(map))
      take(growth_of<map, true>(space.y + f, space.of_row + tokens_of_block, count, width,
                                load(largest + width + f)),
           f);
  }
  return largest_of(growth);
}

// Keys are divided by the largest of the whole block, later keys than the query's included: if these were
// above e⁴⁰ times the others, nothing would be left of them.
constexpr float largest_safe_growth = 40;

bool causal_keys(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange block,
                 const LinearMap& map, float* buffers, float* values, float* totals, float* largest) {
  const CausalSpace own(map, v.head_width, buffers);
  const Space& space = own.space;
  const std::int64_t stride = padded_to_lanes(v.head_width);
  const std::int64_t count = make_outputs(k, mask, block, map, map.weight, space);
  if (count == 0) return true;
  make_shifts<float>(map, count, space);
  make_factors(map, mask, block, count, space);
  float growth = 0;
  with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        growth = largest_growth<point>(map, count, space, largest);
      });
  if (growth > largest_safe_growth && count > 1) return false;
  gather(v, mask, block, space.values);
  if (map.map == PointMap::taylor) {
    turn(space.y, count, padded_to_lanes(map.outputs), own.turned);
    return true;
  }
  clear(own.added, map.features());
  key_features<float>(map, count, space, stride, values, totals, largest, own.added);
  turn(space.features, count, map.features(), own.turned);
  return true;
}

// c (rows,T) = a (rows,depth) · b (depth,T), of which only the columns up to the row's own are needed.
HYDRASCOPE_INLINE void make_lower_product(const float* a, const std::int64_t rows, const std::int64_t depth,
                                          const float* b, float* c) {
  for (std::int64_t i = 0; i < rows; i += rows_at_once) {
    const std::int64_t width = padded_to_lanes(i + rows_at_once);
    const Left<float> own{a + i * depth, depth, 1};
    float* const to = c + i * tokens_of_block;
    std::int64_t f = 0;
    for (; f + registers_at_once * lane_count <= width; f += registers_at_once * lane_count)
      make_tile<Start::zero, registers_at_once>(own, b + f, depth, tokens_of_block, to + f, nullptr);
    for (; f < width; f += lane_count)
      make_tile<Start::zero, 1>(own, b + f, depth, tokens_of_block, to + f, nullptr);
  }
}

std::int64_t causal_outputs(const Rows& q, const unsigned char* mask, const TokenRange block,
                            const LinearMap& map, const LinearMap& key_map, float* key_buffers,
                            const float* values, const float* totals, const float* largest, float* buffers,
                            const Rows& out) {
  const CausalSpace keys(key_map, out.head_width, key_buffers);
  float* const scores = buffers; // (T,T)
  const Space space(map, out.head_width, scores + tokens_of_block * tokens_of_block);
  const std::int64_t stride = padded_to_lanes(out.head_width);
  const std::int64_t count = make_outputs(q, mask, block, map, map.weight, space), rows = whole_rows(count);
  make_shifts<float>(map, count, space);
  make_factors(map, mask, block, count, space);
  QueryProduct products[tokens_of_block];
  earlier_outputs(map, count, space, stride, values, values, totals, largest, products);

  const bool taylor = map.map == PointMap::taylor;
  make_lower_product(taylor ? space.y : space.features, rows,
                     taylor ? padded_to_lanes(map.outputs) : map.features(), keys.turned, scores);
  for (std::int64_t row = 0; row < rows; ++row) {
    Lanes sum{};
    for (std::int64_t f = 0; f < padded_to_lanes(row + 1); f += lane_count) {
      float* const at = scores + row * tokens_of_block + f;
      Lanes product = load(at);
      if (taylor) product = 1.0F + product + 0.5F * product * product;
      const Lanes score = row < count ? kept(product, f, row + 1, Lanes{}) : Lanes{};
      store(at, score);
      sum += score;
    }
    if (row < count) products[row].product += sum_of(sum);
  }
  // Rows of four: what is to the right of a row's own column within them is 0.
  for (std::int64_t i = 0; i < rows; i += rows_at_once)
    make_product<Start::sums>(Left<float>{scores + i * tokens_of_block, tokens_of_block, 1},
                              keys.space.values, rows_at_once, i + rows_at_once, stride,
                              space.values + i * stride);
  return put_outputs(mask, block, map, products, space, out);
}

void add_causal_keys(const unsigned char* mask, const TokenRange block, const LinearMap& map,
                     const std::int64_t value_width, float* buffers, float* values, float* totals) {
  const CausalSpace own(map, value_width, buffers);
  const std::int64_t stride = padded_to_lanes(value_width);
  std::int64_t count = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) count += real(mask, token) ? 1 : 0;
  if (count == 0) return;
  if (map.map == PointMap::taylor) {
    taylor_keys<float>(map, count, own.space, stride, values, totals);
    return;
  }
  for (std::int64_t f = 0; f < map.features(); f += lane_count)
    store(totals + f, load(totals + f) + load(own.added + f));
  add_columns_times(own.space.features, whole_rows(count), map.features(), own.space.values, stride, values);
}

} // namespace
} // namespace hydrascope::cpu::HYDRASCOPE_CPU
