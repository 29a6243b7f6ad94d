// The interface of hydrascope_cuda.so: a table of functions under one exported symbol, checked by its
// version; and attention that is trained through it (attention/cuda/cuda_gradients.cpp).
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope {

// Incremented whenever the table changes: a plug-in of another version is not used.
inline constexpr std::uint32_t hydrascope_cuda_plugin_version = 5;
inline constexpr const char* hydrascope_cuda_plugin_symbol = "hydrascope_cuda_plugin_entry";

// The gradients of the loss with respect to q, k and v, of their shapes and type.
struct InputGradients {
  at::Tensor q, k, v;
};

// The most sequences, and for linear attention the most heads, that the kernels accept: CUDA's limit of a
// grid's last dimensions.
inline constexpr std::int64_t max_cuda_sequences = 65535;

struct HydrascopeCudaPlugin {
  std::uint32_t version;
  // Whether the kernels are built for a device: sm_80 or later. Here and below, index −1 is the current
  // device.
  bool (*runs_on)(at::DeviceIndex device);
  // hydra-cosine: q, k, v (B,H,N,d) float32, bfloat16 or float16 on one CUDA device, mask (B,N)
  // bool there or undefined → (B,H,N,d), masked rows 0. Runs on the current stream. Throws c10::Error.
  at::Tensor (*hydra_cosine)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& mask, bool causal);
  // Its gradients; grad_out (B,H,N,d) is the gradient with respect to its output.
  InputGradients (*hydra_cosine_gradients)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const at::Tensor& mask, bool causal, const at::Tensor& grad_out);
  // Whether `linear` supports φ of y with m entries, for heads of d features, on a device.
  bool (*linear_takes)(cpu::PointMap map, bool normalised, at::ScalarType type, std::int64_t head_width,
                       std::int64_t outputs, bool causal, at::DeviceIndex device);
  // As linear_on_cpu, or causal, on the current stream; parameters lie where q lies. q and k are of v's type
  // or, where that is bfloat16, float32. Throws c10::Error for what linear_takes() does not.
  AttentionOutput (*linear)(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                            const LoopProjection& query, const LoopProjection& key, bool normalised);
  // Whether `linear_gradients` supports φ of y with m entries, for values of d features.
  bool (*linear_gradients_take)(cpu::PointMap map, bool normalised, at::ScalarType type,
                                std::int64_t head_width, std::int64_t outputs, bool causal,
                                at::DeviceIndex device);
  // The gradients of `linear` without a projection: q and k are y (B,H,N,m), v (B,H,N,d), grad_out (B,H,N,d)
  // is the gradient with respect to its output. float32 or bfloat16, on the current stream. As above.
  InputGradients (*linear_gradients)(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                                     const LoopProjection& query, const LoopProjection& key, bool normalised,
                                     const at::Tensor& grad_out);
};

using HydrascopeCudaPluginEntry = const HydrascopeCudaPlugin* (*)();

// Attention by the plug-in, differentiable once: intermediate results are stored neither in the forward nor
// in the backward pass. The plug-in has to outlive the graph.

// HydrascopeCudaPlugin::hydra_cosine, with gradients of q, k and v.
at::Tensor hydra_cosine_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                       const at::Tensor& mask);

// HydrascopeCudaPlugin::linear, of inputs that linear_gradients_take(), with gradients of q, k, v and of the
// projections' weight and bias. y is computed by LibTorch in float32.
AttentionOutput linear_with_gradients(const HydrascopeCudaPlugin& plugin, const AttentionInput& input,
                                      const at::Tensor& mask, cpu::PointMap map, const LoopProjection& query,
                                      const LoopProjection& key, bool normalised);

} // namespace hydrascope
