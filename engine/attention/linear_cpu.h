// Fused linear attention on the CPU (cpu/linear.h), for inputs of any strides.
#pragma once

#include "engine/attention/cpu/linear.h"
#include "engine/attention/kernel.h"

namespace hydrascope {

// What comes before φ on one side: y = scale · (x·W + b) − half_square · ‖x‖².
struct LoopProjection {
  at::Tensor weight = {}; // (H,d,m) or, one for all heads, (1,d,m); undefined: the identity
  at::Tensor bias = {};   // (H,m); undefined: 0
  double scale = 1, half_square = 0;
  at::Tensor turns = {}; // (B,N,2) or, the same for all sequences, (1,N,2): a and b of PointMap::relu_turned
};

// q, k, v (B,H,N,d) of a shape that loops_take() → out (B,H,N,d) of their type; mask (B,N) bool or undefined.
// No gradients. normalised: whether
// outputs are divided by φ(q)·Σφ(k). With bfloat16 inputs products are of bfloat16 where the processor has
// them. The result does not depend on the threads: tokens are taken in parts whose number depends on N alone.
AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                              const LoopProjection& query, const LoopProjection& key, bool normalised);

} // namespace hydrascope
