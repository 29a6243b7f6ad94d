#include "engine/measure/machine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sched.h>
#if defined __x86_64__
  #include <immintrin.h>
#endif

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/remedies.h"
#include "engine/attention/simd/processor.h"
#include "engine/base/shared_library.h"
#include "engine/models/transformer/linear.h"
#include "engine/run/device_clock.h"

namespace hydrascope {
namespace {

// What `measure` returns of a limit of the device.
template <typename Measure>
double measured(const char* limit, const std::string& device, const Measure& measure) {
  const at::NoGradGuard no_gradients;
  return with_remedies({.subject = fmt::format("{} of {}", limit, device),
                        .memory = "end other programs that use it",
                        .other = "report this with the command",
                        .device = device},
                       measure);
}

// Seconds of the fastest of some runs, after one that warms up.
double fastest(const DeviceClock& clock, const std::function<void()>& run) {
  constexpr int runs = 7;
  double best = std::numeric_limits<double>::infinity();
  run();
  for (int i = 0; i < runs; ++i) best = std::min(best, clock.seconds(run));
  return best;
}

// The triad of elements [first, last), whole lines of 16, with non-temporal stores, which do not read the
// line first.
#if defined __x86_64__
__attribute__((target("avx512f"))) void streamed_triad(float* a, const float* b, const float* c,
                                                       const std::int64_t first, const std::int64_t last) {
  const __m512 scale = _mm512_set1_ps(0.5F);
  for (std::int64_t i = first; i < last; i += 16)
    _mm512_stream_ps(a + i, _mm512_fmadd_ps(_mm512_loadu_ps(c + i), scale, _mm512_loadu_ps(b + i)));
  _mm_sfence();
}
bool can_stream() { return cpu::best_processor(false) >= cpu::Processor::avx512; }
#else
void streamed_triad(float*, const float*, const float*, std::int64_t, std::int64_t) {}
bool can_stream() { return false; }
#endif

} // namespace

double triad_bandwidth(const std::int64_t footprint, const std::string& device) {
  return measured("triad bandwidth", device, [&] {
    const at::TensorOptions floats = at::TensorOptions(at::kFloat).device(device_of(device));
    const DeviceClock clock(floats.device());
    const std::int64_t length = std::max<std::int64_t>(16, footprint / 12 / 16 * 16);
    at::Tensor a = at::empty({length}, floats);
    const at::Tensor b = at::full({length}, 1.0, floats), c = at::full({length}, 2.0, floats);
    // Short arrays many times, or the clock and the call dominate.
    const std::int64_t repeats = std::max<std::int64_t>(1, (4 << 20) / (12 * length));
    double seconds = fastest(clock, [&] {
      for (std::int64_t i = 0; i < repeats; ++i) at::add_out(a, b, c, 0.5);
    });
    if (floats.device().is_cpu() && can_stream()) {
      constexpr std::int64_t lines_of_thread = 4096;
      const float *from = b.const_data_ptr<float>(), *scaled = c.const_data_ptr<float>();
      float* const to = a.mutable_data_ptr<float>();
      seconds = std::min(seconds, fastest(clock, [&] {
                           for (std::int64_t i = 0; i < repeats; ++i)
                             at::parallel_for(0, length / 16, lines_of_thread,
                                              [&](const std::int64_t first, const std::int64_t last) {
                                                streamed_triad(to, from, scaled, 16 * first, 16 * last);
                                              });
                         }));
    }
    return static_cast<double>(12 * length * repeats) / seconds;
  });
}

double read_bandwidth(const std::int64_t bytes, const std::string& device) {
  return measured("read bandwidth", device, [&] {
    const at::Device place = device_of(device);
    const DeviceClock clock(place);
    constexpr std::int64_t width = 1024;
    const std::int64_t rows = std::max<std::int64_t>(1, bytes / width / 4);
    // 1/3 needs float32, so multiply_row() makes no smaller copy.
    const at::Tensor floats = at::full({rows, width}, 1.0 / 3, at::TensorOptions(place).dtype(at::kFloat));
    double seconds = fastest(clock, [&] { at::sum(floats); });
    if (place.is_cpu()) {
      const std::vector<float> x(width, 1);
      std::vector<float> out(static_cast<std::size_t>(2 * rows));
      for (const at::Tensor& weights : {floats, floats.view(at::kBFloat16).view({2 * rows, width})}) {
        const Linear linear({{weights, {}}});
        seconds = std::min(seconds, fastest(clock, [&] { linear.multiply_row(x.data(), out.data()); }));
      }
    }
    return static_cast<double>(floats.nbytes()) / seconds;
  });
}

double matrix_rate(const std::string& dtype, const std::string& device) {
  return measured("rate of matrix products", device, [&] {
    const at::Device place = device_of(device);
    const DeviceClock clock(place);
    const std::int64_t side = place.is_cpu() ? 1024 : 8192;
    const at::ScalarType type = dtype_on(place, dtype);
    const at::Tensor x = at::randn({side, side}, place).to(type), w = at::randn({side, side}, place).to(type);
    double seconds = fastest(clock, [&] { at::matmul(x, w); });
    if (place.is_cpu()) {
      const Linear packed({{w, {}}});
      seconds = std::min(seconds, fastest(clock, [&] { packed(x); }));
    }
    return 2.0 * static_cast<double>(side * side * side) / seconds;
  });
}

MachineLimits machine_limits(const std::string& dtype, const std::string& device) {
  constexpr std::int64_t beyond_caches = 3LL << 26;
  return {.bandwidth = triad_bandwidth(beyond_caches, device), .matrix_rate = matrix_rate(dtype, device)};
}

std::string threads_text() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int first = 0; first < CPU_SETSIZE; ++first) {
      if (!CPU_ISSET(first, &set)) continue;
      int last = first;
      while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
      processors += fmt::format("{}{}", processors.empty() ? "" : ",", first);
      if (last > first) processors += fmt::format("-{}", last);
      first = last;
    }
  }
  return fmt::format("{} threads on processors {}", at::get_num_threads(), processors);
}

namespace {

// NVML's constants (nvml.h), fixed by its binary interface.
constexpr int clock_of_multiprocessors = 1, sensor_of_gpu = 0;
constexpr std::array<std::pair<unsigned long long, const char*>, 3> reasons_of_clock = {
    {{0x04 | 0x80, "power"}, {0x20 | 0x40, "heat"}, {0x08, "the hardware"}}};

// Loads the driver, never to unload it; nullopt if one of the functions is missing.
std::optional<NvidiaDriver> load_nvidia_driver() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  void* const management = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  NvidiaDriver driver{};
  int (*start_cuda)(unsigned) = nullptr;
  int (*start_management)() = nullptr;
  const bool complete =
      find_function(cuda, "cuInit", start_cuda) && find_function(cuda, "cuDeviceGet", driver.device_get) &&
      find_function(cuda, "cuDeviceGetPCIBusId", driver.bus_id) &&
      find_function(management, "nvmlInit_v2", start_management) &&
      find_function(management, "nvmlDeviceGetHandleByPciBusId_v2", driver.handle_of_bus) &&
      find_function(management, "nvmlDeviceGetName", driver.name) &&
      find_function(management, "nvmlDeviceGetClockInfo", driver.clock) &&
      find_function(management, "nvmlDeviceGetMaxClockInfo", driver.most_clock) &&
      find_function(management, "nvmlDeviceGetTemperature", driver.temperature) &&
      find_function(management, "nvmlDeviceGetCurrentClocksThrottleReasons", driver.clock_reasons);
  if (!complete || start_cuda(0) != 0 || start_management() != 0) return std::nullopt;
  return driver;
}

std::optional<double> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

// The value of a line of /proc/cpuinfo; empty if it has another key.
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
  const c10::Device place = device_of(device);
  if (place.is_cpu()) return cpu_state();
  static const std::optional<NvidiaDriver> driver = load_nvidia_driver();
  return driver ? gpu_state(*driver, std::max<int>(0, place.index())) : DeviceState{};
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

std::string torch_version() { return TORCH_VERSION; }

std::string processor_text() {
  const std::string name = cpu_state().name;
  const char* const loops = cpu::name_of(cpu::processors().back());
  return fmt::format("{}, {} loops", name.empty() ? "unknown processor" : name, loops);
}

CudaState cuda_state() {
  const CudaStatus& status = cuda_status();
  if (!status.available) return {false, "none: " + status.reason};
  const std::string name = device_state("cuda").name;
  return {true, name.empty() ? "a GPU without a name" : name};
}

std::string machine_text(const std::string& device) {
  const std::string state = text_of(device_state(device));
  std::string text = device.starts_with("cuda") ? device : threads_text();
  if (!state.empty()) text += "; " + state;
  return text;
}

} // namespace hydrascope
