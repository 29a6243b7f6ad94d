// CUDA at run time: one build serves machines with and without an NVIDIA GPU. The driver is looked for, then
// LibTorch's CUDA half is loaded, then our own kernels (hydrascope_cuda.so beside the executable). Plain
// header.
#pragma once

#include <string>

namespace hydrascope {

struct CudaStatus {
  bool available = false;     // tensors can live on a GPU
  std::string reason;         // why not, one sentence for the user
  bool fused_kernels = false; // hydrascope_cuda.so is loaded
  std::string fused_kernels_reason;
};

// Loads what there is, once, on first call. Must come before anything else asks LibTorch whether it has CUDA:
// LibTorch remembers the first answer, and one given before its CUDA half was loaded is no for good.
const CudaStatus& cuda_status();

struct HydrascopeCudaPlugin;
// The plug-in's functions (engine/attention/interface/plugin.h); null where fused_kernels is false.
const HydrascopeCudaPlugin* cuda_plugin();

} // namespace hydrascope
