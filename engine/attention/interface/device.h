// Devices. One build serves machines with and without an NVIDIA GPU: CUDA is loaded at run time, first the
// driver, then LibTorch's CUDA half, then the program's own kernels (hydrascope_cuda.so beside the
// executable).
#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace hydrascope {

struct CudaStatus {
  bool available = false;     // tensors can live on a GPU
  std::string reason;         // why not, one sentence for the user
  bool fused_kernels = false; // hydrascope_cuda.so is loaded
  std::string fused_kernels_reason;
};

// Loads CUDA at the first call. Must precede any other query of LibTorch for CUDA: LibTorch remembers the
// first answer, which is "no" before its CUDA half is loaded.
const CudaStatus& cuda_status();

struct HydrascopeCudaPlugin;
// The plug-in's functions (cuda_plugin.h); null where fused_kernels is false.
const HydrascopeCudaPlugin* cuda_plugin();
// The same for a kind of device; null where it has none.
const HydrascopeCudaPlugin* fused_kernels(c10::DeviceType type);
// Gives another accelerator, that of the tests, such functions. Before attention runs there.
void set_fused_kernels(c10::DeviceType type, const HydrascopeCudaPlugin* plugin);

// The device with its index: "cuda" without one is the current device. The CPU as it is.
c10::Device with_index(c10::Device device);

// The device of "auto".
struct AutomaticDevice {
  c10::Device device = c10::kCPU; // with its index, except for the CPU
  std::string reason = {};        // why it is not a GPU, one sentence for the user
};

// The device that the environment variable HYDRASCOPE_DEVICE names; without one, the current GPU if kernels
// compute there what they compute on the CPU, else the CPU. Found at the first call, which loads CUDA. Throws
// as device_of() for what the variable names.
const AutomaticDevice& automatic_device();

// The device of a name on the command line: automatic_device() for "auto", a GPU for "cuda" and "cuda:i", and
// an accelerator that has been registered with LibTorch from outside (PrivateUse1) for its name. Throws Error
// where there is no CUDA, with the reason, UsageError for any other name.
c10::Device device_of(const std::string& text);

// The number type of a name on the command line, "float32" or "bfloat16". Throws UsageError for any other.
c10::ScalarType dtype_on_cpu(const std::string& dtype);
// The same for any device: a GPU computes in "float16" as well.
c10::ScalarType dtype_on(c10::Device device, const std::string& dtype);

} // namespace hydrascope
