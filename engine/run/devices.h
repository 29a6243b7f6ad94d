// The devices that models can run on, found once and then read by every thread. Plain header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

struct DeviceFacts {
  std::string name = {};     // as --device takes it: "cuda:0"
  std::string model = {};    // "NVIDIA H100 80GB HBM3"; empty if unknown
  std::int64_t bytes = 0;    // of its memory; 0: unknown
  std::string unusable = {}; // why models cannot run on it; empty if they can
};

// What there is beside the CPU.
struct DeviceList {
  std::vector<DeviceFacts> accelerators = {};
  std::string no_cuda = {};          // why there is no CUDA device; empty if there is one
  std::string no_fused_kernels = {}; // why the program's own CUDA kernels do not run; empty if they do
  std::string automatic = "cpu";     // the device of "auto"
  std::string why_cpu = {};          // why that is the CPU; empty if it is not
};

// Loads CUDA at the first call, which takes seconds where there is a driver, and looks for the device of
// "auto" (automatic_device()). Must precede the first backward pass of the process: LibTorch makes the
// threads of its devices then, and for those it knows.
DeviceList list_devices();

// The name of the device that --device means by `name`, with an index but for the CPU: that of "auto" is
// `automatic` or, while `devices` is null, "cpu". Loads nothing.
std::string listed_name(const DeviceList* devices, std::string_view name);

// The same for one that is there; loads CUDA for "auto" and "cuda". Throws as device_of().
std::string device_name(const std::string& name);

// Why models cannot run on the device of this name, as --device takes it; empty if they can. `devices`: null
// while they are looked for. Loads nothing.
std::string why_unusable(const DeviceList* devices, std::string_view name);

// Why LibTorch has no code for a GPU of compute capability major.minor; empty if it has. `architectures` is
// the text of LibTorch's configuration, which names them as nvcc does: "code=sm_80", "code=compute_120".
std::string why_not_compiled_for(std::string_view architectures, int major, int minor);

// "cuda:0, NVIDIA H100 80GB HBM3, 85.0 GB"
std::string text_of(const DeviceFacts& device);

} // namespace hydrascope
