// The loops behind linear.h, once for each kind of processor.
#pragma once

#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

struct LinearLoops {
  // Blocks of up to tokens_of_block tokens, as add_keys and answer take ranges. `buffers`: buffer_floats of
  // them.
  void (*add_keys)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange block,
                   const LinearMap& map, float* buffers, float* values, float* ones, float* largest);
  std::int64_t (*answer)(const Rows& q, const unsigned char* mask, TokenRange block, const LinearMap& map,
                         const float* values, const float* ones, const float* largest, float* buffers,
                         const Rows& out);
};

std::int64_t buffer_floats(const LinearMap& map, std::int64_t value_width);

namespace plain {
const LinearLoops& linear_loops();
}
namespace avx2 {
const LinearLoops& linear_loops();
}
namespace avx512 {
const LinearLoops& linear_loops();
}
namespace avx512bf16 { // its products are of bfloat16
const LinearLoops& linear_loops();
}
const LinearLoops& linear_loops(Processor processor);

} // namespace hydrascope::cpu
