// Attention trained through the GPU's fused kernels: what lies between inputs and outputs is stored neither
// forwards nor backwards. There are no second derivatives. The plug-in has to outlive the graph.
#pragma once

#include "engine/attention/interface/plugin.h"

namespace hydrascope {

// hydra-cosine as the plug-in's hydra_cosine, with gradients of q, k and v.
at::Tensor hydra_cosine_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                       const at::Tensor& mask);

// As linear_on_cpu(), of what the plug-in's linear_gradients_take, with gradients of q, k, v and of the
// projections' weight and bias. What comes before φ is made by LibTorch's own products, rounded to q's type.
AttentionOutput linear_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                      const at::Tensor& mask, cpu::PointMap map, const LoopProjection& query,
                                      const LoopProjection& key, bool normalised);

} // namespace hydrascope
