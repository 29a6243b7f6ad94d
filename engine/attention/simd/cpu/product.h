// The loops' matrix products on their own: for tests of their errors and, in the benchmark, as an upper bound
// on the loops' speed. No LibTorch.
#pragma once

#include <cstdint>

#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

// Factors are floats or, where the processor has products of bfloat16 numbers, pairs of these in half of the
// place (products.h). rows, and depth of columns: multiples of 4; depth of rows, columns and width: of
// most_lanes.
struct ProductLoops {
  // a (rows,depth) as a left factor of rows_times(); b (depth,width) as the right factor of both, and a
  // (depth,columns) as the left one of add_columns_times(). `factors` may be a or b itself.
  void (*make_left)(const float* a, std::int64_t rows, std::int64_t depth, void* factors);
  void (*make_right)(const float* b, std::int64_t depth, std::int64_t width, void* factors);
  // c (rows,width) = a · b.
  void (*rows_times)(const void* a, std::int64_t rows, std::int64_t depth, const void* b, std::int64_t width,
                     float* c);
  // c (columns,width) += aᵀ · b.
  void (*add_columns_times)(const void* a, std::int64_t depth, std::int64_t columns, const void* b,
                            std::int64_t width, float* c);
};
HYDRASCOPE_LOOPS(ProductLoops, product_loops)

} // namespace hydrascope::cpu
