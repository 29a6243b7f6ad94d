#include "engine/measure/device_state.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/attention/interface/device.h"

namespace hydrascope {
namespace {

// NVML's numbers (nvml.h), which its binary interface has for good.
constexpr int clock_of_multiprocessors = 1, sensor_of_gpu = 0;
constexpr std::array<std::pair<unsigned long long, const char*>, 3> reasons_of_clock = {
    {{0x04 | 0x80, "power"}, {0x20 | 0x40, "heat"}, {0x08, "the hardware"}}};

template <typename Function>
bool find(void* library, const char* symbol, Function& function) {
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// Loaded for good, once; none where one of the functions is missing.
std::optional<NvidiaDriver> load_nvidia_driver() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  void* const management = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  NvidiaDriver driver{};
  int (*start_cuda)(unsigned) = nullptr;
  int (*start_management)() = nullptr;
  const bool complete = find(cuda, "cuInit", start_cuda) && find(cuda, "cuDeviceGet", driver.device_get) &&
                        find(cuda, "cuDeviceGetPCIBusId", driver.bus_id) &&
                        find(management, "nvmlInit_v2", start_management) &&
                        find(management, "nvmlDeviceGetHandleByPciBusId_v2", driver.handle_of_bus) &&
                        find(management, "nvmlDeviceGetName", driver.name) &&
                        find(management, "nvmlDeviceGetClockInfo", driver.clock) &&
                        find(management, "nvmlDeviceGetMaxClockInfo", driver.most_clock) &&
                        find(management, "nvmlDeviceGetTemperature", driver.temperature) &&
                        find(management, "nvmlDeviceGetCurrentClocksThrottleReasons", driver.clock_reasons);
  if (!complete || start_cuda(0) != 0 || start_management() != 0) return std::nullopt;
  return driver;
}

std::optional<double> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

// What stands behind the colon of a line of /proc/cpuinfo with this key; empty if it is another.
std::string value_of(const std::string& line, const std::string& key) {
  const std::size_t colon = line.find(':');
  if (!line.starts_with(key) || colon == std::string::npos || colon + 2 > line.size()) return {};
  return line.substr(colon + 2);
}

std::optional<double> hottest(const std::filesystem::path& zones) {
  std::optional<double> celsius;
  std::error_code failure;
  for (const auto& zone : std::filesystem::directory_iterator(zones, failure)) {
    std::ifstream stream(zone.path() / "type");
    std::string type;
    if (!(stream >> type) || (type != "x86_pkg_temp" && !type.starts_with("cpu"))) continue;
    const std::optional<double> thousandths = number_in(zone.path() / "temp");
    if (thousandths) celsius = std::max(celsius.value_or(-273), 1e-3 * *thousandths);
  }
  return celsius;
}

} // namespace

DeviceState cpu_state(const std::filesystem::path& root) {
  DeviceState state;
  std::ifstream processors(root / "proc/cpuinfo");
  double sum = 0;
  int count = 0;
  for (std::string line; std::getline(processors, line);) {
    if (const std::string name = value_of(line, "model name"); !name.empty()) state.name = name;
    if (const std::string clock = value_of(line, "cpu MHz"); !clock.empty()) {
      sum += std::strtod(clock.c_str(), nullptr);
      ++count;
    }
  }
  if (count > 0) state.megahertz = sum / count;
  if (const auto most = number_in(root / "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq"))
    state.most_megahertz = 1e-3 * *most;
  state.celsius = hottest(root / "sys/class/thermal");
  return state;
}

DeviceState gpu_state(const NvidiaDriver& driver, const int ordinal) {
  DeviceState state;
  int device = 0;
  std::array<char, 64> bus{};
  void* handle = nullptr;
  if (driver.device_get(&device, ordinal) != 0 ||
      driver.bus_id(bus.data(), static_cast<int>(bus.size()), device) != 0 ||
      driver.handle_of_bus(bus.data(), &handle) != 0)
    return state;
  std::array<char, 96> name{}; // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  if (driver.name(handle, name.data(), static_cast<unsigned>(name.size())) == 0) state.name = name.data();
  unsigned number = 0;
  if (driver.clock(handle, clock_of_multiprocessors, &number) == 0) state.megahertz = number;
  if (driver.most_clock(handle, clock_of_multiprocessors, &number) == 0) state.most_megahertz = number;
  if (driver.temperature(handle, sensor_of_gpu, &number) == 0) state.celsius = number;
  unsigned long long reasons = 0;
  if (driver.clock_reasons(handle, &reasons) == 0)
    for (const auto& [bits, what] : reasons_of_clock)
      if ((reasons & bits) != 0)
        state.held_back += fmt::format("{}{}", state.held_back.empty() ? "" : " and ", what);
  return state;
}

DeviceState device_state(const std::string& device) {
  const c10::Device wanted = device_of(device);
  if (wanted.is_cpu()) return cpu_state();
  static const std::optional<NvidiaDriver> driver = load_nvidia_driver();
  return driver ? gpu_state(*driver, std::max<int>(0, wanted.index())) : DeviceState{};
}

std::string text_of(const DeviceState& state) {
  std::vector<std::string> parts;
  if (!state.name.empty()) parts.push_back(state.name);
  if (state.megahertz)
    parts.push_back(state.most_megahertz
                        ? fmt::format("{:.0f} of {:.0f} MHz", *state.megahertz, *state.most_megahertz)
                        : fmt::format("{:.0f} MHz", *state.megahertz));
  if (state.celsius) parts.push_back(fmt::format("{:.0f} °C", *state.celsius));
  if (!state.held_back.empty()) parts.push_back("held back by " + state.held_back);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

} // namespace hydrascope
