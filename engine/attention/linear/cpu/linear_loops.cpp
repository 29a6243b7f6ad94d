// The loops of linear attention, for the processor that HYDRASCOPE_CPU names. Nothing here calls a function
// that is not inlined (softmax_loops.cpp says why).
#include "engine/attention/linear/cpu/linear_causal.h"
#include "engine/attention/linear/cpu/linear_features.h"
#include "engine/attention/linear/cpu/linear_keys.h"
#include "engine/attention/linear/cpu/linear_queries.h"
#include "engine/attention/linear/cpu/linear_taylor.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

HYDRASCOPE_INLINE const Factor* weight_factors(const LinearMap& map, const Space& space) {
  if (map.weight == nullptr) return nullptr;
  return right_factors(map.weight, padded_to_lanes(map.head_width), padded_to_lanes(map.outputs),
                       as<Factor>(space.weight));
}

// How often a product over the range calls its Prefetch.
HYDRASCOPE_INLINE std::int64_t steps_of(const TokenRange range) {
  return (range.last - range.first + rows_at_once - 1) / rows_at_once;
}
HYDRASCOPE_INLINE std::int64_t blocks_of(const TokenRange range) {
  return (range.last - range.first + tokens_of_block - 1) / tokens_of_block;
}

void add_keys(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange range,
              const LinearMap& map, const Upcoming& next, float* buffers, float* values, float* totals,
              float* largest) {
  [[maybe_unused]] const TileRegisters tiles;
  const Space space(map, v.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(v.head_width);
  const Factor* const weight = weight_factors(map, space);
  Prefetch next_keys(next.first, next.tokens, steps_of(range)),
      next_values(next.second, next.tokens, blocks_of(range) * map.features() / rows_at_once);
  in_blocks(
      range, [&](const TokenRange block) __attribute__((always_inline)) {
        const std::int64_t count = make_outputs(
            k, mask, block, map, weight, space, [&]() __attribute__((always_inline)) { next_keys(); });
        if (count == 0) return;
        gather_factors<Side::right>(v, mask, block, as<Factor>(space.values), space.rows);
        make_shifts<Factor>(map, count, space);
        make_factors(map, mask, block, count, space);
        if (map.map == PointMap::taylor) { // takes so long that waiting for values is no part of it
          taylor_keys<Factor>(map, count, space, stride, values, totals);
          return;
        }
        key_features<Factor>(map, count, space, stride, values, totals, largest, totals);
        add_columns_times(
            as<const Factor>(space.features), whole_rows(count), map.features(),
            as<const Factor>(space.values), stride,
            values, [&]() __attribute__((always_inline)) { next_values(); });
      });
}

std::int64_t outputs(const Rows& q, const unsigned char* mask, const TokenRange range, const LinearMap& map,
                     const float* values, const float* totals, const float* largest, const Upcoming& next,
                     float* buffers, const Rows& out) {
  [[maybe_unused]] const TileRegisters tiles;
  const Space space(map, out.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(out.head_width);
  const Factor* const weight = weight_factors(map, space);
  const Factor* const value_factors = // of taylor, whose features are made in parts, with each of them
      map.map == PointMap::taylor ? nullptr
                                  : right_factors(values, map.features(), stride, as<Factor>(space.sums));
  Prefetch next_queries(next.first, next.tokens, steps_of(range)),
      next_outputs(next.second, next.tokens, steps_of(range));
  std::int64_t zeros = 0;
  in_blocks(
      range, [&](const TokenRange block) __attribute__((always_inline)) {
        const std::int64_t count = make_outputs(
            q, mask, block, map, weight, space, [&]() __attribute__((always_inline)) { next_queries(); });
        make_shifts<Factor>(map, count, space);
        make_factors(map, mask, block, count, space);
        QueryProduct products[tokens_of_block];
        earlier_outputs(
            map, count, space, stride, values, value_factors, totals, largest,
            products, [&]() __attribute__((always_inline)) { next_outputs(); });
        zeros += put_outputs(mask, block, map, products, space, out);
      });
  return zeros;
}

constexpr LinearLoops loops{add_keys, outputs, causal_keys, causal_outputs, add_causal_keys};

} // namespace

const LinearLoops& linear_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
