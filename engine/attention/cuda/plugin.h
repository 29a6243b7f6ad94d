// What hydrascope_cuda.so offers the engine: a table of functions under one exported symbol, checked by its
// version.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// Counted up whenever the table changes: a plug-in of another version is not used.
inline constexpr std::uint32_t hydrascope_cuda_plugin_version = 1;
inline constexpr const char* hydrascope_cuda_plugin_symbol = "hydrascope_cuda_plugin_entry";

struct HydrascopeCudaPlugin {
  std::uint32_t version;
  // hydra-cosine, not causal: q, k, v (B,H,N,d) float32, bfloat16 or float16 on one CUDA device, mask (B,N)
  // bool there or undefined → (B,H,N,d), masked rows 0. Runs on the current stream; no gradients. Throws
  // c10::Error.
  at::Tensor (*hydra_cosine)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& mask);
};

using HydrascopeCudaPluginEntry = const HydrascopeCudaPlugin* (*)();

} // namespace hydrascope
