// What hydrascope_cuda.so offers the engine: a table of functions under one exported symbol, checked by its
// version.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/simd/point_map.h"

namespace hydrascope {

// Counted up whenever the table changes: a plug-in of another version is not used.
inline constexpr std::uint32_t hydrascope_cuda_plugin_version = 3;
inline constexpr const char* hydrascope_cuda_plugin_symbol = "hydrascope_cuda_plugin_entry";

// The loss by each of an attention's inputs, of their shapes and type.
struct InputGradients {
  at::Tensor q, k, v;
};

struct HydrascopeCudaPlugin {
  std::uint32_t version;
  // Whether the current device is one that the kernels are built for: sm_80 or later.
  bool (*runs_here)();
  // hydra-cosine, not causal: q, k, v (B,H,N,d) float32, bfloat16 or float16 on one CUDA device, mask (B,N)
  // bool there or undefined → (B,H,N,d), masked rows 0. Runs on the current stream. Throws c10::Error.
  at::Tensor (*hydra_cosine)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& mask);
  // Its gradients, by_out (B,H,N,d) the loss by its output.
  InputGradients (*hydra_cosine_gradients)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const at::Tensor& mask, const at::Tensor& by_out);
  // Whether `linear` takes such a map of heads of d features, m of which φ is made.
  bool (*linear_takes)(cpu::PointMap map, bool normalised, at::ScalarType type, std::int64_t head_width,
                       std::int64_t outputs);
  // As linear_on_cpu, on the current stream; parameters may lie on any device.
  AttentionOutput (*linear)(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                            const LoopProjection& query, const LoopProjection& key, bool normalised);
  // Whether `linear_gradients` takes such a map of y of m entries and values of d features.
  bool (*linear_gradients_take)(cpu::PointMap map, bool normalised, at::ScalarType type,
                                std::int64_t head_width, std::int64_t outputs);
  // The gradients of `linear` without a projection, q and k being y (B,H,N,m), v (B,H,N,d), on the current
  // stream, by_out (B,H,N,d) the loss by its output. float32 or bfloat16.
  InputGradients (*linear_gradients)(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                                     const LoopProjection& query, const LoopProjection& key, bool normalised,
                                     const at::Tensor& by_out);
};

using HydrascopeCudaPluginEntry = const HydrascopeCudaPlugin* (*)();

} // namespace hydrascope
