// The product of a row with a matrix of weights, as for each token that a decoder writes: bound by reading
// the weights once. No LibTorch.
#pragma once

#include <cstdint>

#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

enum class RowNumber { float32, bfloat16, float16 }; // float16 is slow on Processor::plain

struct RowLoops {
  // out[c][o] = Σ_i weights[o,i] · x[c][i], summed in float32, for `rows` consecutive rows of weights
  // (rows,in) and 1 or 2 columns c. A column's sums do not depend on the other.
  void (*product)(const float* const* x, const void* weights, RowNumber number, int columns, std::int64_t in,
                  std::int64_t rows, float* const* out);
};
HYDRASCOPE_LOOPS(RowLoops, row_loops)

} // namespace hydrascope::cpu
