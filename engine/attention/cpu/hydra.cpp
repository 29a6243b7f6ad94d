#include "engine/attention/cpu/hydra.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/attention/cpu/hydra_variant.h"

namespace hydrascope::cpu {
namespace {

const HydraLoops& loops() {
#if defined(__x86_64__)
  static const HydraLoops& chosen = __builtin_cpu_supports("x86-64-v4")   ? avx512::hydra_loops()
                                    : __builtin_cpu_supports("x86-64-v3") ? avx2::hydra_loops()
                                                                          : plain::hydra_loops();
  return chosen;
#else
  return plain::hydra_loops();
#endif
}

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
    loops().sum(k, v, mask, block, map, scale, buffers.data(), part.data());
    loops().add(sum, part.data(), padded);
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
    loops().softmax(k, v, mask, block, buffers.data(), largest, total, weighted);
  });
}

void hydra_gate(const Rows& q, const unsigned char* mask, const TokenRange range, const RowMap map,
                const float scale, const float* sum, const Rows& out) {
  std::vector<float> buffers = zeros(2 * padded_width(q.width()));
  loops().gate(q, mask, range, map, scale, sum, out, buffers.data());
}

} // namespace hydrascope::cpu
