// softmax(q kᵀ · scale) v of one head without storing its weights: queries and keys are processed in blocks,
// and each row keeps its largest score and the sum of its exponentials so far (Milakov & Gimelshein 2018; Dao
// et al., FlashAttention, 2022, Algorithm 1). No LibTorch.
#pragma once

#include "engine/attention/simd/loop_types.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

// Queries that are processed against one block of keys before the next: keys are packed once for all of them.
constexpr std::int64_t queries_at_once = 256;
// Keys of a block: with their values they fit the second-level cache.
constexpr std::int64_t keys_of_block = 256;

// The number of floats in the loops' buffers, whose contents need no initialisation.
constexpr std::int64_t softmax_buffer_floats(const std::int64_t head_width, const std::int64_t value_width) {
  const std::int64_t in = padded_to_lanes(head_width), out = padded_to_lanes(value_width);
  return queries_at_once * (in + out + 2) + keys_of_block * (2 * in + out) + tokens_of_block * keys_of_block +
         2 * (in > out ? in : out);
}

struct SoftmaxLoops {
  // out_i of a range of up to queries_at_once queries over all `tokens` keys, or over those up to i (causal),
  // 0 where masked. mask: a byte per token, 0 = masked; null: all real. Masked tokens are not read. Products
  // are of numbers rounded to bfloat16 and summed in float32 where has_bfloat16_products(), else of floats.
  void (*output)(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask, TokenRange queries,
                 std::int64_t tokens, bool causal, float scale, float* buffers, const Rows& out);
};
HYDRASCOPE_LOOPS(SoftmaxLoops, softmax_loops)

} // namespace hydrascope::cpu
