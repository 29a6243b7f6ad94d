// Fused linear attention on the CPU (cpu/linear.h), for inputs of any strides.
#pragma once

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/linear/cpu/linear.h"

namespace hydrascope {

// q, k, v (B,H,N,d) of a shape that loops_take() → out (B,H,N,d) of their type; mask (B,N) bool or undefined.
// No gradients. normalised: whether
// outputs are divided by φ(q)·Σφ(k). With bfloat16 inputs products are of bfloat16 where the processor has
// them. The result does not depend on the threads: tokens are taken in parts whose number depends on N alone.
AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                              const LoopProjection& query, const LoopProjection& key, bool normalised);

} // namespace hydrascope
