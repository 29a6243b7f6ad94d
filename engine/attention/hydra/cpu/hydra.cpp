#include "engine/attention/hydra/cpu/hydra.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hydrascope::cpu {
namespace {

std::vector<float> zeros(const std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

} // namespace

std::int64_t padded_width(const std::int64_t width) { return padded_to_lanes(width); }

void hydra_sum(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange range,
               const RowMap map, const float scale, float* sum) {
  const std::int64_t padded = padded_width(k.width());
  std::vector<float> buffers = zeros(2 * padded), part = zeros(padded);
  std::fill(sum, sum + padded, 0.0F);
  in_blocks(range, [&](const TokenRange block) {
    hydra_loops(best_processor(false)).sum(k, v, mask, block, map, scale, buffers.data(), part.data());
    hydra_loops(best_processor(false)).add(sum, part.data(), padded);
  });
}

void hydra_softmax_sums(const Rows& k, const Rows& v, const unsigned char* mask, const TokenRange range,
                        float* largest, float* total, float* weighted) {
  const std::int64_t padded = padded_width(k.width());
  std::vector<float> buffers = zeros(3 * padded);
  std::fill(largest, largest + padded, -std::numeric_limits<float>::infinity());
  std::fill(total, total + padded, 0.0F);
  std::fill(weighted, weighted + padded, 0.0F);
  in_blocks(range, [&](const TokenRange block) {
    hydra_loops(best_processor(false)).softmax(k, v, mask, block, buffers.data(), largest, total, weighted);
  });
}

void hydra_gate(const Rows& q, const unsigned char* mask, const TokenRange range, const RowMap map,
                const float scale, const float* sum, const Rows& out, const bool past_caches) {
  std::vector<float> buffers = zeros(2 * padded_width(q.width()));
  hydra_loops(best_processor(false)).gate(q, mask, range, map, scale, sum, out, past_caches, buffers.data());
}

CausalHydraSums::CausalHydraSums(const std::int64_t width, const bool softmax) {
  const std::vector<float> row = zeros(padded_width(width));
  if (softmax) {
    largest.assign(row.size(), -std::numeric_limits<float>::infinity());
    total = weighted = row;
  } else {
    sum = part = row;
  }
}

void causal_hydra(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask,
                  const TokenRange range, const CausalHydraMaps& maps, const Rows& out,
                  CausalHydraSums& sums) {
  const std::int64_t padded = padded_width(q.width());
  std::vector<float> buffers = zeros(4 * padded);
  const HydraLoops& loops = hydra_loops(best_processor(false));
  for (std::int64_t token = range.first; token < range.last; ++token) {
    if (mask != nullptr && mask[token] == 0) {
      loops.gate(q, mask, {token, token + 1}, maps.query, 1, buffers.data(), out, false, buffers.data());
      continue;
    }
    ++sums.tokens;
    if (maps.softmax) {
      loops.causal_softmax(q, k, v, token, maps.query, buffers.data(), sums.largest.data(), sums.total.data(),
                           sums.weighted.data(), out);
      continue;
    }
    if (sums.tokens % tokens_of_block == 0) loops.add(sums.sum.data(), sums.part.data(), padded);
    const float scale = maps.mean ? 1 / static_cast<float>(sums.tokens) : 1;
    loops.causal(q, k, v, token, maps.query, maps.key, scale, buffers.data(), sums.sum.data(),
                 sums.part.data(), out);
  }
}

} // namespace hydrascope::cpu
