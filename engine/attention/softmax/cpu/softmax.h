// softmax(q kᵀ · scale) v of one head without its weights ever stored: queries and keys are taken in blocks,
// and each row keeps its largest score and the sum of its exponentials so far (Milakov & Gimelshein 2018; Dao
// et al., FlashAttention, 2022, Algorithm 1). Compiled for the same processors as linear.h. No LibTorch.
#pragma once

#include "engine/attention/simd/rows.h"

namespace hydrascope::cpu {

// Queries that are taken against one block of keys before the next: keys are packed once for all of them.
constexpr std::int64_t queries_at_once = 256;

// Floats that softmax_answer works in.
std::int64_t softmax_buffer_floats(std::int64_t head_width, std::int64_t value_width);

// out_i of a range of up to queries_at_once queries over all `tokens` keys, 0 where masked. mask: a byte a
// token, 0 = masked; null: all real. Masked tokens are not looked at. bfloat16: products of numbers rounded
// to it, summed in float32, where the processor has them. buffers: anything.
void softmax_answer(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask,
                    TokenRange queries, std::int64_t tokens, float scale, bool bfloat16, float* buffers,
                    const Rows& out);

} // namespace hydrascope::cpu
