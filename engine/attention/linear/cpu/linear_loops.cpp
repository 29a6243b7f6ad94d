// The loops of linear attention, for the processor that HYDRASCOPE_CPU names. Nothing here calls a function
// that is not inlined (softmax_loops.cpp says why).
#include "engine/attention/linear/cpu/linear_causal.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

void add_block(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange block,
               const LinearMap& map, float* buffers, float* values, float* totals, float* largest) {
  const Space space(map, v.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(v.head_width);
  const std::int64_t count = gather(k, mask, block, space.x);
  if (count == 0) return;
  gather(v, mask, block, space.values);
  make_outputs(map, count, space);
  make_shifts(map, count, space);
  make_factors(map, mask, block, count, space);
  if (map.map == PointMap::taylor) {
    taylor_keys(map, count, space, stride, values, totals);
    return;
  }
  const std::int64_t rows = whole_rows(count);
  clear(space.features + count * map.features(), (rows - count) * map.features());
  with_exponential_map(
      map.map, [&]<PointMap point>() __attribute__((always_inline)) {
        exponential_keys<point>(map, count, space, stride, values, totals, largest, totals);
      });
  plain_keys(map, count, space, totals);
  add_columns_times(space.features, rows, map.features(), space.values, stride, values, space.spare);
}

std::int64_t output_block(const Rows& q, const unsigned char* mask, const TokenRange block,
                          const LinearMap& map, const float* values, const float* totals,
                          const float* largest, float* buffers, const Rows& out) {
  const Space space(map, out.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(out.head_width);
  const std::int64_t count = gather(q, mask, block, space.x);
  make_outputs(map, count, space);
  make_shifts(map, count, space);
  make_factors(map, mask, block, count, space);
  QueryProduct products[tokens_of_block];
  earlier_outputs(map, count, space, stride, values, totals, largest, products);
  return put_outputs(mask, block, map, products, space, out);
}

constexpr LinearLoops loops{add_block, output_block, causal_keys, causal_outputs, add_causal_keys};

} // namespace

const LinearLoops& linear_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
