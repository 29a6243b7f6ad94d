#include "engine/run/devices.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>

#include <dlfcn.h>

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/base/shared_library.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

// Functions of libcuda.so.1, which LibTorch has loaded; all return 0 for success. None of them creates a
// context, which would take some hundred megabytes of each GPU's memory.
struct CudaDriver {
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*name)(char* text, int length, int device) = nullptr;
  int (*total_memory)(std::size_t* bytes, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
};

std::optional<CudaDriver> cuda_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  CudaDriver driver;
  int (*start)(unsigned) = nullptr;
  const bool complete = find_function(library, "cuInit", start) &&
                        find_function(library, "cuDeviceGet", driver.device_get) &&
                        find_function(library, "cuDeviceGetName", driver.name) &&
                        find_function(library, "cuDeviceTotalMem_v2", driver.total_memory) &&
                        find_function(library, "cuDeviceGetAttribute", driver.attribute);
  if (!complete || start(0) != 0) return std::nullopt;
  return driver;
}

DeviceFacts cuda_facts(const CudaDriver& driver, const int ordinal, const std::string& architectures) {
  constexpr int compute_capability_major = 75, compute_capability_minor = 76; // CUdevice_attribute
  DeviceFacts facts;
  facts.name = fmt::format("cuda:{}", ordinal);
  int device = 0;
  if (driver.device_get(&device, ordinal) != 0) return facts;
  std::array<char, 256> name{};
  if (driver.name(name.data(), static_cast<int>(name.size() - 1), device) == 0) facts.model = name.data();
  std::size_t bytes = 0;
  if (driver.total_memory(&bytes, device) == 0) facts.bytes = static_cast<std::int64_t>(bytes);
  int major = 0, minor = 0;
  if (driver.attribute(&major, compute_capability_major, device) == 0 &&
      driver.attribute(&minor, compute_capability_minor, device) == 0)
    facts.unusable = why_not_compiled_for(architectures, major, minor);
  return facts;
}

void add_cuda_devices(DeviceList& list) {
  const CudaStatus& status = cuda_status();
  list.no_cuda = status.reason;
  if (!status.available) return;
  list.no_fused_kernels = status.fused_kernels_reason;
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  const std::string architectures = cuda.showConfig();
  const std::optional<CudaDriver> driver = cuda_driver();
  for (int i = 0; i < cuda.deviceCount(); ++i)
    list.accelerators.push_back(driver ? cuda_facts(*driver, i, architectures)
                                       : DeviceFacts{.name = fmt::format("cuda:{}", i)});
}

// Of a back end that has registered itself with LibTorch.
void add_registered_devices(DeviceList& list) {
  constexpr auto type = c10::DeviceType::PrivateUse1;
  if (!c10::is_privateuse1_backend_registered()) return;
  for (int i = 0; i < c10::impl::VirtualGuardImpl(type).deviceCount(); ++i) {
    DeviceFacts facts;
    const auto index = static_cast<c10::DeviceIndex>(i);
    facts.name = c10::Device(type, index).str();
    try {
      facts.bytes = static_cast<std::int64_t>(c10::getDeviceAllocator(type)->getMemoryInfo(index).second);
    } catch (const std::exception& error) {
      facts.unusable = first_line(error.what());
    }
    list.accelerators.push_back(std::move(facts));
  }
}

} // namespace

DeviceList list_devices() {
  DeviceList list;
  try {
    add_cuda_devices(list);
  } catch (const std::exception& error) {
    list.no_cuda = first_line(error.what());
  }
  add_registered_devices(list);
  try {
    const AutomaticDevice& chosen = automatic_device();
    list.automatic = chosen.device.str();
    list.why_cpu = chosen.reason;
  } catch (const std::exception& error) {
    list.why_cpu = first_line(error.what());
  }
  return list;
}

std::string device_name(const std::string& name) { return device_of(name).str(); }

std::string listed_name(const DeviceList* const devices, const std::string_view name) {
  if (name == "auto") return devices == nullptr ? "cpu" : devices->automatic;
  if (name == "cpu") return "cpu";
  return std::string(name) + (name.find(':') == std::string_view::npos ? ":0" : "");
}

std::string why_unusable(const DeviceList* devices, const std::string_view name) {
  const std::string listed = listed_name(devices, name);
  if (listed == "cpu") return {};
  if (devices == nullptr) return "the devices are being looked for";
  for (const DeviceFacts& device : devices->accelerators)
    if (device.name == listed) return device.unusable;
  if (name.starts_with("cuda") && !devices->no_cuda.empty())
    return "there is no CUDA here: " + devices->no_cuda;
  return fmt::format("there is no device {}", name);
}

std::string why_not_compiled_for(const std::string_view architectures, const int major, const int minor) {
  const int capability = 10 * major + minor;
  bool any = false;
  for (const std::string_view kind : {"code=sm_", "code=compute_"}) {
    for (auto at = architectures.find(kind); at != std::string_view::npos;
         at = architectures.find(kind, at + 1)) {
      std::string_view digits = architectures.substr(at + kind.size());
      digits = digits.substr(0, digits.find_first_not_of("0123456789"));
      const auto known = whole_number(digits);
      if (!known) continue;
      any = true;
      // Machine code runs on later GPUs of its generation, an intermediate one on all later GPUs.
      const bool machine_code = kind == "code=sm_";
      if (*known <= capability && (!machine_code || *known / 10 == major)) return {};
    }
  }
  if (!any) return {};
  return fmt::format("LibTorch is not compiled for GPUs of compute capability {}.{}", major, minor);
}

std::string text_of(const DeviceFacts& device) {
  std::string text = device.name;
  if (!device.model.empty()) text += ", " + device.model;
  if (device.bytes > 0) text += ", " + bytes_text(static_cast<double>(device.bytes));
  return text;
}

} // namespace hydrascope
