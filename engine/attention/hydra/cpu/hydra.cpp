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

} // namespace hydrascope::cpu
