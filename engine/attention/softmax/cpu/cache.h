// Softmax attention of one new token over cached keys and values of a key/value head, for all heads of
// queries that share it: keys and values are read once. No LibTorch.
#pragma once

#include "engine/attention/simd/loop_types.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

// A key/value head's cache. Keys lie in tiles of tokens_of_block tokens, (tile,d,T): a feature of all tokens
// of a tile side by side, so that a product needs no sum across a register. Values lie in rows of
// padded_to_lanes(d).
struct CachedHead {
  const void* keys = nullptr;
  const void* values = nullptr;
  Element element = Element::float32;
  std::int64_t head_width = 1; // d
};

// Tokens whose scores are computed before their values are read.
constexpr std::int64_t cached_tokens_at_once = 512;

struct CacheLoops {
  // For each of `group` queries q (group,d), already scaled by 1/√d: over a range of at most
  // cached_tokens_at_once tokens from the start of a tile on, the largest score, Σ_j e^(s_j − largest) and,
  // in rows of padded_to_lanes(d), Σ_j e^(s_j − largest) v_j. buffers: group · cached_tokens_at_once floats.
  void (*part)(const float* q, std::int64_t group, const CachedHead& head, TokenRange range, float* buffers,
               float* largest, float* totals, float* sums);
};
HYDRASCOPE_LOOPS(CacheLoops, cache_loops)

} // namespace hydrascope::cpu
