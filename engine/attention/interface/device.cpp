#include "engine/attention/interface/device.h"

#include <exception>
#include <filesystem>
#include <optional>

#include <dlfcn.h>

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device_check.h"
#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/base/shared_library.h"

namespace hydrascope {
namespace {

std::string loader_message() {
  const char* const message = dlerror();
  return message == nullptr ? "unknown error of the loader" : message;
}

// The folder of the LibTorch that this process runs.
std::filesystem::path torch_folder() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(&at::globalContext), &where) == 0 || where.dli_fname == nullptr)
    return {};
  return std::filesystem::path(where.dli_fname).parent_path();
}

std::filesystem::path executable_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
}

// The library is never unloaded: LibTorch keeps pointers into it.
void* load(const std::filesystem::path& file, int flags) { return dlopen(file.c_str(), flags); }

struct Loaded {
  CudaStatus status;
  const HydrascopeCudaPlugin* plugin = nullptr;
};

void load_fused_kernels(Loaded& loaded) {
  const std::filesystem::path file = executable_folder() / "hydrascope_cuda.so";
  std::error_code failure;
  if (!std::filesystem::exists(file, failure)) {
    loaded.status.fused_kernels_reason =
        fmt::format("{} is not there: it is built where nvcc is found", file.string());
    return;
  }
  void* const library = load(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.status.fused_kernels_reason = loader_message();
    return;
  }
  HydrascopeCudaPluginEntry entry = nullptr;
  const HydrascopeCudaPlugin* const plugin =
      find_function(library, hydrascope_cuda_plugin_symbol, entry) ? entry() : nullptr;
  if (plugin == nullptr || plugin->version != hydrascope_cuda_plugin_version) {
    loaded.status.fused_kernels_reason =
        fmt::format("{} belongs to another version of the program", file.string());
    return;
  }
  bool runs = false;
  for (int device = 0; device < at::detail::getCUDAHooks().deviceCount(); ++device)
    runs = runs || plugin->runs_on(static_cast<c10::DeviceIndex>(device));
  if (!runs) {
    loaded.status.fused_kernels_reason = "they are built for NVIDIA GPUs of compute capability 8.0 and later";
    return;
  }
  loaded.plugin = plugin;
  loaded.status.fused_kernels = true;
  loaded.status.fused_kernels_reason.clear();
}

// `driver` is the library.
std::string why_no_device(void* const driver) {
  int (*version)(int*) = nullptr;
  int newest = 0;
  const auto needed = static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
  constexpr int major = 1000, minor = 10; // as CUDA counts; minor versions go together
  if (find_function(driver, "cuDriverGetVersion", version) && version(&newest) == 0 &&
      newest / major < needed / major)
    return fmt::format("the NVIDIA driver is for CUDA {}.{}, LibTorch needs one for CUDA {}", newest / major,
                       newest % major / minor, needed / major);
  return "the NVIDIA driver offers no device";
}

Loaded load_cuda() {
  Loaded loaded;
  CudaStatus& status = loaded.status;
  status.fused_kernels_reason = "CUDA is not available";
  void* const driver = load("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) {
    status.reason = "no NVIDIA driver was found (libcuda.so.1)";
    return loaded;
  }
  const std::filesystem::path beside = torch_folder() / "libtorch_cuda.so";
  std::error_code failure;
  const std::filesystem::path file = std::filesystem::exists(beside, failure) ? beside : "libtorch_cuda.so";
  if (load(file, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    status.reason =
        fmt::format("LibTorch's CUDA half could not be loaded: {} (tools/setup --full-torch fetches it)",
                    loader_message());
    return loaded;
  }
  try {
    if (!at::hasCUDA()) {
      status.reason = "LibTorch was asked for CUDA before its CUDA half was loaded";
    } else if (at::detail::getCUDAHooks().deviceCount() == 0) {
      status.reason = why_no_device(driver);
    } else {
      status.available = true;
      at::globalContext().setAllowTF32CuDNN(false); // patch embeddings would lose half of their digits
    }
  } catch (const std::exception& error) {
    status.reason = fmt::format("CUDA does not start: {}", error.what());
  }
  if (status.available) load_fused_kernels(loaded);
  return loaded;
}

// Of another accelerator than CUDA.
struct OtherKernels {
  c10::DeviceType type = c10::kCPU; // none
  const HydrascopeCudaPlugin* plugin = nullptr;
};
OtherKernels& other_kernels() {
  static OtherKernels other;
  return other;
}

const Loaded& loaded_once() {
  static const Loaded loaded = load_cuda();
  return loaded;
}

UsageError unknown_device(const std::string& text) {
  return {"--device", fmt::format("there is no device \"{}\"", text), "write auto, cpu, cuda or cuda:i"};
}

std::optional<c10::Device> registered_device(const std::string& text) {
  if (!c10::is_privateuse1_backend_registered()) return std::nullopt;
  const std::string name = c10::get_privateuse1_backend(/*lower_case=*/true);
  if (text != name && !text.starts_with(name + ':')) return std::nullopt;
  try {
    const c10::Device device = with_index(c10::Device(text));
    const c10::impl::VirtualGuardImpl guard(device.type());
    return device.index() < guard.deviceCount() ? std::optional(device) : std::nullopt;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

AutomaticDevice find_automatic_device() {
  const std::string chosen = environment("HYDRASCOPE_DEVICE");
  if (!chosen.empty() && chosen != "auto") {
    try {
      const c10::Device device = device_of(chosen);
      return {device, device.is_cpu() ? "HYDRASCOPE_DEVICE says so" : ""};
    } catch (const Error& error) {
      throw UsageError("HYDRASCOPE_DEVICE=" + chosen, error.what(), "or unset the variable");
    }
  }
  if (!cuda_status().available) return {c10::kCPU, cuda_status().reason};
  const c10::Device gpu = with_index(c10::kCUDA);
  const std::string wrong = why_wrong(gpu);
  return wrong.empty() ? AutomaticDevice{gpu, ""} : AutomaticDevice{c10::kCPU, wrong};
}

} // namespace

const CudaStatus& cuda_status() { return loaded_once().status; }

const HydrascopeCudaPlugin* cuda_plugin() { return loaded_once().plugin; }

const HydrascopeCudaPlugin* fused_kernels(const c10::DeviceType type) {
  if (type == c10::kCPU) return nullptr;
  if (type == c10::kCUDA) return cuda_plugin();
  const OtherKernels& other = other_kernels();
  return other.type == type ? other.plugin : nullptr;
}

void set_fused_kernels(const c10::DeviceType type, const HydrascopeCudaPlugin* const plugin) {
  other_kernels() = {type, plugin};
}

c10::Device with_index(const c10::Device device) {
  if (device.is_cpu() || device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

const AutomaticDevice& automatic_device() {
  static const AutomaticDevice found = find_automatic_device();
  return found;
}

c10::Device device_of(const std::string& text) {
  if (text == "auto") return automatic_device().device;
  if (text == "cpu") return c10::kCPU;
  if (const auto registered = registered_device(text)) return *registered;
  if (text != "cuda" && !text.starts_with("cuda:")) throw unknown_device(text);
  const CudaStatus& cuda = cuda_status();
  if (!cuda.available)
    throw Error("--device " + text, "there is no CUDA here: " + cuda.reason, "use --device cpu");
  std::optional<c10::Device> device;
  try {
    device = with_index(c10::Device(text));
  } catch (const c10::Error&) {
    throw unknown_device(text);
  }
  const auto count = at::detail::getCUDAHooks().deviceCount();
  if (device->index() >= count)
    throw Error("--device " + text,
                fmt::format("there {} {} GPU{}", count == 1 ? "is" : "are", count, count == 1 ? "" : "s"),
                fmt::format("use cuda:0 to cuda:{}", count - 1));
  return *device;
}

c10::ScalarType dtype_on_cpu(const std::string& dtype) {
  if (dtype == "float32") return c10::kFloat;
  if (dtype == "bfloat16") return c10::kBFloat16;
  throw UsageError("--dtype " + dtype, "the CPU computes in float32 or bfloat16", "use --dtype bfloat16");
}

c10::ScalarType dtype_on(const c10::Device device, const std::string& dtype) {
  return !device.is_cpu() && dtype == "float16" ? c10::kHalf : dtype_on_cpu(dtype);
}

} // namespace hydrascope
