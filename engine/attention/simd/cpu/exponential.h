// The loops' exponentials and logarithm on their own, for tests of their errors. No LibTorch.
#pragma once

#include <cstdint>

#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

struct ExponentialLoops {
  // e^x of `count` numbers, a multiple of most_lanes: to 1e-7 of itself, and to 1.1e-4 (lanes.h).
  void (*exact)(const float* x, std::int64_t count, float* power);
  void (*rough)(const float* x, std::int64_t count, float* power);
  // log x of as many normal x > 0: to 1e-7, or to 1.2e-7 of itself where that is more.
  void (*logarithm)(const float* x, std::int64_t count, float* result);
};
HYDRASCOPE_LOOPS(ExponentialLoops, exponential_loops)

} // namespace hydrascope::cpu
