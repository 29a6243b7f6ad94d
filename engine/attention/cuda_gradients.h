// Attention trained through the GPU's fused kernels: what lies between inputs and outputs is stored neither
// forwards nor backwards. Both need cuda_plugin() and have no second derivatives.
#pragma once

#include "engine/attention/linear_cpu.h"

namespace hydrascope {

// hydra-cosine as the plug-in's hydra_cosine, with gradients of q, k and v.
at::Tensor hydra_cosine_with_gradients(const AttentionInput& input, const at::Tensor& mask);

// As linear_on_cpu(), of what the plug-in's linear_gradients_take, with gradients of q, k, v and of the
// projections' weight and bias. What comes before φ is made by LibTorch's own products, rounded to q's type.
AttentionOutput linear_with_gradients(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                                      const LoopProjection& query, const LoopProjection& key,
                                      bool normalised);

} // namespace hydrascope
