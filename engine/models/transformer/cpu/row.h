// The product of a row with a matrix of weights, as for each token that a decoder writes: bound by reading
// the weights once. No LibTorch.
#pragma once

#include "engine/attention/simd/loop_types.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

struct RowLoops {
  // out[o] = Σ_i weights[o,i] · x[i], summed in float32, for `rows` consecutive rows of weights (rows,in).
  void (*product)(const float* x, const void* weights, Element element, std::int64_t in, std::int64_t rows,
                  float* out);
};
HYDRASCOPE_LOOPS(RowLoops, row_loops)

} // namespace hydrascope::cpu
