// The loops of linear attention, for the processor that HYDRASCOPE_CPU names. Nothing here calls a function
// that is not inlined (softmax_loops.cpp says why).
#include "engine/attention/linear/cpu/linear_features.h"

namespace hydrascope::cpu::HYDRASCOPE_CPU {
namespace {

// Computes y of the gathered rows into space.y.
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
        exponential_keys<point>(map, count, space, stride, values, totals, largest);
      });
  if (map.map == PointMap::relu) plain_keys<PointMap::relu>(map, count, space, totals);
  if (map.map == PointMap::relu_token_weighted)
    plain_keys<PointMap::relu_token_weighted>(map, count, space, totals);
  if (map.map == PointMap::unit) plain_keys<PointMap::unit>(map, count, space, totals);
  add_columns_times(space.features, rows, map.features(), space.values, stride, values, space.spare);
}

std::int64_t output_block(const Rows& q, const unsigned char* mask, const TokenRange block,
                          const LinearMap& map, const float* values, const float* totals,
                          const float* largest, float* buffers, const Rows& out) {
  const Space space(map, out.head_width, buffers);
  const std::int64_t stride = padded_to_lanes(out.head_width), width = padded_to_lanes(map.outputs);
  const std::int64_t count = gather(q, mask, block, space.x), rows = whole_rows(count);
  make_outputs(map, count, space);
  make_shifts(map, count, space);
  make_factors(map, mask, block, count, space);
  float denominators[tokens_of_block];
  clear(space.values, rows * stride);
  if (map.map == PointMap::taylor) {
    taylor_outputs(map, count, space, stride, values, totals, denominators);
  } else {
    for (std::int64_t row = 0; row < count; ++row)
      denominators[row] =
          query_features(map, space.y + row * width, space.of_row[row], space.of_row[tokens_of_block + row],
                         totals, largest, space.features + row * map.features());
    clear(space.features + count * map.features(), (rows - count) * map.features());
    add_rows_times(space.features, rows, map.features(), values, stride, space.values, space.spare);
  }
  std::int64_t zeros = 0, row = 0;
  for (std::int64_t token = block.first; token < block.last; ++token) {
    float* result = space.x; // 0 for a masked token; x is no longer needed
    if (real(mask, token)) {
      result = space.values + row * stride;
      const float denominator = map.normalised ? denominators[row] : 1;
      ++row;
      zeros += denominator == 0 ? 1 : 0;
      // Where the denominator is 0, every product is 0, and the numerator with them.
      const Lanes divisor = all(denominator == 0 ? 1.0F : denominator);
      for (std::int64_t f = 0; f < stride; f += lane_count) store(result + f, load(result + f) / divisor);
    } else {
      clear(result, stride);
    }
    put_row(out, token, result);
  }
  return zeros;
}

constexpr LinearLoops loops{add_block, output_block};

} // namespace

const LinearLoops& linear_loops() { return loops; }

} // namespace hydrascope::cpu::HYDRASCOPE_CPU
