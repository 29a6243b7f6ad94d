// The loops behind softmax.h, once for each kind of processor.
#pragma once

#include "engine/attention/simd/processor.h"
#include "engine/attention/softmax/cpu/softmax.h"

namespace hydrascope::cpu {

// Keys of a block: with its values they fill no more than the second cache.
constexpr std::int64_t keys_of_block = 256;

struct SoftmaxLoops {
  // As softmax_answer.
  void (*answer)(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask, TokenRange queries,
                 std::int64_t tokens, float scale, float* buffers, const Rows& out);
};

namespace plain {
const SoftmaxLoops& softmax_loops();
}
namespace avx2 {
const SoftmaxLoops& softmax_loops();
}
namespace avx512 {
const SoftmaxLoops& softmax_loops();
}
namespace avx512bf16 { // its products are of bfloat16
const SoftmaxLoops& softmax_loops();
}
const SoftmaxLoops& softmax_loops(Processor processor);

} // namespace hydrascope::cpu
