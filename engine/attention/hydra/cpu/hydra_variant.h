// The loops behind hydra.h, once for each kind of processor.
#pragma once

#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

// `buffers` holds two rows, for softmax three; they are zero beyond the D features.
struct HydraLoops {
  // Adds the range's tokens to `sum`.
  void (*sum)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, RowMap map,
              float scale, float* buffers, float* sum);
  // Adds `part` to `sum` and clears it.
  void (*add)(float* sum, float* part, std::int64_t padded);
  // Takes the range's tokens into the running maximum and the sums relative to it.
  void (*softmax)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, float* buffers,
                  float* largest, float* total, float* weighted);
  void (*gate)(const Rows& q, const unsigned char* mask, TokenRange range, RowMap map, float scale,
               const float* sum, const Rows& out, bool past_caches, float* buffers);
};

namespace plain {
const HydraLoops& hydra_loops();
}
namespace avx2 {
const HydraLoops& hydra_loops();
}
namespace avx512 {
const HydraLoops& hydra_loops();
}
const HydraLoops& hydra_loops(Processor processor);

} // namespace hydrascope::cpu
