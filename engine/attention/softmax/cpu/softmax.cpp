#include "engine/attention/softmax/cpu/softmax.h"

#include <algorithm>

#include "engine/attention/softmax/cpu/softmax_variant.h"

namespace hydrascope::cpu {

const SoftmaxLoops& softmax_loops(const Processor processor) {
  switch (processor) {
    case Processor::plain: break;
    case Processor::avx2: return avx2::softmax_loops();
    case Processor::avx512: return avx512::softmax_loops();
    case Processor::avx512bf16: return avx512bf16::softmax_loops();
  }
  return plain::softmax_loops();
}

std::int64_t softmax_buffer_floats(const std::int64_t head_width, const std::int64_t value_width) {
  const std::int64_t in = padded_to_lanes(head_width), out = padded_to_lanes(value_width);
  const std::int64_t left = tokens_of_block * std::max(in, keys_of_block);
  const std::int64_t right = keys_of_block * std::max(in, out);
  return queries_at_once * (in + out + 2) + keys_of_block * (2 * in + out) + tokens_of_block * keys_of_block +
         (left + right) / 2;
}

void softmax_answer(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask,
                    const TokenRange queries, const std::int64_t tokens, const float scale,
                    const bool bfloat16, float* buffers, const Rows& out) {
  softmax_loops(best_processor(bfloat16)).answer(q, k, v, mask, queries, tokens, scale, buffers, out);
}

} // namespace hydrascope::cpu
