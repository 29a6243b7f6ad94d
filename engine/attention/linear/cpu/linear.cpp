#include "engine/attention/linear/cpu/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace hydrascope::cpu {
namespace {

std::size_t size(const std::int64_t count) { return static_cast<std::size_t>(count); }

bool without_exponential(const PointMap map) {
  return map == PointMap::relu || map == PointMap::relu_token_weighted || map == PointMap::unit ||
         map == PointMap::taylor;
}

// The factor e^(largest − top) of a feature's sums when `top` becomes its largest; 0 without a key.
float share_of(const float largest, const float top) {
  if (std::isinf(largest)) return 0;
  return largest == top ? 1 : std::exp(largest - top);
}

// All heads as one Rows if they lie side by side in memory.
template <auto rows, typename Head>
std::optional<Rows> side_by_side(const std::span<const Head> heads) {
  Rows all = heads.front().*rows;
  const std::int64_t bytes = all.head_width * (all.element == Element::float32 ? 4 : 2);
  const auto* place = static_cast<const char*>(all.data);
  for (const Head& head : heads) {
    if ((head.*rows).data != place) return std::nullopt;
    place += bytes;
  }
  all.heads = static_cast<std::int64_t>(heads.size());
  return all;
}

// Walks the range a few blocks at a time and calls use(head, blocks, upcoming) for every head before it moves
// on. If the heads lie side by side, each call requests its share of the next tokens, with all heads; else
// its own rows of them.
template <auto first, auto second, typename Head, typename Use>
void for_heads_of_blocks(const std::span<const Head> heads, const TokenRange range, const Use& use) {
  // The same bytes of either type. W and S become factors of bfloat16 each time, so fewer tokens cost more.
  const std::int64_t blocks_at_once = (heads.front().*first).element == Element::float32 ? 1 : 2;
  const std::int64_t at_once = blocks_at_once * tokens_of_block;
  const auto count = static_cast<std::int64_t>(heads.size());
  const std::optional<Rows> all_first = side_by_side<first>(heads), all_second = side_by_side<second>(heads);
  for (TokenRange blocks{range.first, 0}; blocks.first < range.last; blocks.first = blocks.last) {
    blocks.last = std::min(blocks.first + at_once, range.last);
    const std::int64_t next = std::min(blocks.last + at_once, range.last) - blocks.last;
    for (std::int64_t i = 0; i < count; ++i) {
      const Head& head = heads[size(i)];
      use(head, blocks,
          all_first && all_second
              ? Upcoming{*all_first,
                         *all_second,
                         {blocks.last + next * i / count, blocks.last + next * (i + 1) / count}}
              : Upcoming{head.*first, head.*second, {blocks.last, blocks.last + next}});
    }
  }
}

} // namespace

std::int64_t buffer_floats(const LinearMap& map, const std::int64_t value_width) {
  const std::int64_t in = padded_to_lanes(map.head_width), out = padded_to_lanes(map.outputs),
                     value = padded_to_lanes(value_width), features = map.features_at_once();
  const std::int64_t factors = in * out + features * value + tokens_of_block * in;
  return tokens_of_block * (in + out + features + value + 2) + 2 * std::max(in, value) + factors;
}

std::int64_t causal_key_floats(const LinearMap& map, const std::int64_t value_width) {
  return buffer_floats(map, value_width) + map.features() + map.turned_rows() * tokens_of_block;
}

std::int64_t causal_query_floats(const LinearMap& map, const std::int64_t value_width) {
  return buffer_floats(map, value_width) + tokens_of_block * tokens_of_block;
}

std::int64_t LinearMap::turned_rows() const {
  return map == PointMap::taylor ? padded_to_lanes(outputs) : features();
}

std::int64_t LinearMap::features() const {
  const std::int64_t width = padded_to_lanes(outputs);
  if (has_two_halves(map)) return 2 * width;
  if (map != PointMap::taylor) return width;
  std::int64_t count = most_lanes + width;
  for (std::int64_t i = 0; i < width; i += most_lanes)
    count += taylor_own_features + most_lanes * (width - i - most_lanes);
  return count;
}

std::int64_t LinearMap::features_at_once() const {
  if (map != PointMap::taylor) return features();
  return std::max(taylor_own_features, most_lanes + padded_to_lanes(outputs));
}

KeySums::KeySums(const LinearMap& map, const std::int64_t value_width)
    : values(size(map.features() * padded_to_lanes(value_width))),
      totals(size(map.features())),
      largest(size(map.features()),
              without_exponential(map.map) ? 0 : -std::numeric_limits<float>::infinity()) {}

void add_keys(const std::span<const KeyHead> heads, const unsigned char* mask, const TokenRange range,
              const Processor processor) {
  const LinearLoops& loops = linear_loops(processor);
  const KeyHead& any = heads.front();
  const auto buffers =
      std::make_unique_for_overwrite<float[]>(size(buffer_floats(any.map, any.v.head_width)));
  for_heads_of_blocks<&KeyHead::k, &KeyHead::v>(
      heads, range, [&](const KeyHead& head, const TokenRange blocks, const Upcoming& next) {
        loops.add_keys(head.k, head.v, mask, blocks, head.map, next, buffers.get(), head.sums->values.data(),
                       head.sums->totals.data(), head.sums->largest.data());
      });
}

void add_sums(KeySums& sums, const KeySums& others) {
  const std::size_t stride = sums.values.size() / sums.totals.size();
  for (std::size_t f = 0; f < sums.totals.size(); ++f) {
    const float top = std::max(sums.largest[f], others.largest[f]);
    const float own = share_of(sums.largest[f], top), other = share_of(others.largest[f], top);
    sums.largest[f] = top;
    if (own != 1) {
      sums.totals[f] = own == 0 ? 0 : sums.totals[f] * own;
      for (std::size_t i = f * stride; i < (f + 1) * stride; ++i)
        sums.values[i] = own == 0 ? 0 : sums.values[i] * own;
    }
    if (other == 0) continue;
    sums.totals[f] += others.totals[f] * other;
    for (std::size_t i = f * stride; i < (f + 1) * stride; ++i) sums.values[i] += others.values[i] * other;
  }
}

void merge(const std::span<KeySums> parts) {
  KeySums& sums = parts.front();
  for (const KeySums& part : parts.subspan(1)) add_sums(sums, part);
  for (float& top : sums.largest)
    if (std::isinf(top)) top = 0;
}

std::int64_t linear_outputs(const std::span<const QueryHead> heads, const unsigned char* mask,
                            const TokenRange range, const Processor processor) {
  const LinearLoops& loops = linear_loops(processor);
  const QueryHead& any = heads.front();
  const auto buffers =
      std::make_unique_for_overwrite<float[]>(size(buffer_floats(any.map, any.out.head_width)));
  std::int64_t zeros = 0;
  for_heads_of_blocks<&QueryHead::q, &QueryHead::out>(
      heads, range, [&](const QueryHead& head, const TokenRange blocks, const Upcoming& next) {
        zeros +=
            loops.outputs(head.q, mask, blocks, head.map, head.sums->values.data(), head.sums->totals.data(),
                          head.sums->largest.data(), next, buffers.get(), head.out);
      });
  return zeros;
}

std::int64_t causal_outputs(const Rows& k, const Rows& v, const std::span<const CausalQueries> queries,
                            const unsigned char* mask, const TokenRange range, const LinearMap& key_map,
                            KeySums& sums, const Processor processor) {
  const LinearLoops& loops = linear_loops(processor);
  const LinearMap& query_map = queries.front().map;
  const auto key_buffers =
      std::make_unique_for_overwrite<float[]>(size(causal_key_floats(key_map, v.head_width)));
  const auto buffers =
      std::make_unique_for_overwrite<float[]>(size(causal_query_floats(query_map, v.head_width)));
  float *const values = sums.values.data(), *const totals = sums.totals.data(),
               *const largest = sums.largest.data();
  std::int64_t zeros = 0;
  const auto process = [&](const auto& self, const TokenRange block) -> void {
    if (block.last - block.first == 1) { // a token sees the sums that hold its own key
      loops.add_keys(k, v, mask, block, key_map, {}, key_buffers.get(), values, totals, largest);
      for (const auto& [q, map, out] : queries)
        zeros += loops.outputs(q, mask, block, map, values, totals, largest, {}, buffers.get(), out);
      return;
    }
    if (!loops.causal_keys(k, v, mask, block, key_map, key_buffers.get(), values, totals, largest)) {
      const std::int64_t middle = block.first + (block.last - block.first) / 2;
      self(self, {block.first, middle});
      self(self, {middle, block.last});
      return;
    }
    for (const auto& [q, map, out] : queries)
      zeros += loops.causal_outputs(q, mask, block, map, key_map, key_buffers.get(), values, totals, largest,
                                    buffers.get(), out);
    loops.add_causal_keys(mask, block, key_map, v.head_width, key_buffers.get(), values, totals);
  };
  in_blocks(range, [&](const TokenRange block) { process(process, block); });
  return zeros;
}

} // namespace hydrascope::cpu
