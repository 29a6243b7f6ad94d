// The machine: its measured limits (memory bandwidth by McCalpin's STREAM triad and of reading alone, rate of
// matrix products) and the state of its processors, without which a time says little. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hydrascope {

// Bytes per second of a = b + s·c in float32. The three arrays have `footprint` bytes together, each counted
// once, as in STREAM; the best of several runs. On the CPU with LibTorch's current threads, by ordinary or by
// non-temporal stores, whichever are faster. Small footprints measure a cache. Throws as device_of.
double triad_bandwidth(std::int64_t footprint, const std::string& device = "cpu");

// Bytes per second at which an array of `bytes` is read once: the fastest of several runs of LibTorch's sum
// and, on the CPU, of the product with a row as in decoding (Linear::multiply_row). Less than triad_bandwidth
// where a core has too few reads under way: the triad writes a third of its bytes. Throws as device_of.
double read_bandwidth(std::int64_t bytes, const std::string& device = "cpu");

// Floating-point operations per second (two per multiply-accumulate) of a product of square matrices: on the
// CPU of 1,024 rows, the better of at::matmul and oneDNN with packed weights, on a GPU of 8,192 rows (float32
// without TF32). Throws as device_of, UsageError for a dtype other than float32, bfloat16 and, on a GPU,
// float16.
double matrix_rate(const std::string& dtype, const std::string& device = "cpu");

struct MachineLimits {
  double bandwidth = 0;   // bytes per second, of arrays larger than the caches
  double matrix_rate = 0; // floating-point operations per second

  bool operator==(const MachineLimits&) const = default;
};
// Both, with LibTorch's current threads. Throws as matrix_rate.
MachineLimits machine_limits(const std::string& dtype, const std::string& device = "cpu");

// LibTorch's threads and the processors this process may run on, as "2 threads on processors 0-1".
std::string threads_text();

// The version of LibTorch, as "2.11.0".
std::string torch_version();

// The processor and the kind of it whose loops run: "AMD EPYC 9R14, avx512bf16 loops".
std::string processor_text();

struct CudaState {
  bool available = false;
  std::string text; // the first GPU's name, or why there is none
};
// Loads CUDA at the first call.
CudaState cuda_state();

// Where a time was measured: the device or the CPU's threads, and its state, as "2 threads on processors 0-1;
// AMD EPYC, 2600 MHz". Throws as device_of.
std::string machine_text(const std::string& device);

struct DeviceState {
  std::string name;                                // the vendor's
  std::optional<double> megahertz, most_megahertz; // now, and at most: a CPU's mean, a GPU's multiprocessors
  std::optional<double> celsius;
  std::string held_back; // what limits a GPU's clock: "power", "heat"; empty if nothing does or it is unknown
};

// The state of "auto" or "cpu", "cuda" or "cuda:i", as far as the driver reports it. Throws as device_of.
DeviceState device_state(const std::string& device);

// "NVIDIA H100, 1755 of 1980 MHz, 61 °C, held back by power"; empty if nothing is known.
std::string text_of(const DeviceState& state);

// The CPU's state, from Linux's files below `root`: proc/cpuinfo, sys/devices/system/cpu/cpufreq,
// sys/class/thermal.
DeviceState cpu_state(const std::filesystem::path& root = "/");

// The functions of libcuda.so.1 and libnvidia-ml.so.1 that gpu_state calls; all return 0 for success.
struct NvidiaDriver {
  int (*device_get)(int* device, int ordinal);
  int (*bus_id)(char* text, int length, int device);
  int (*handle_of_bus)(const char* bus_id, void** handle);
  int (*name)(void* handle, char* text, unsigned length);
  int (*clock)(void* handle, int kind, unsigned* megahertz);
  int (*most_clock)(void* handle, int kind, unsigned* megahertz);
  int (*temperature)(void* handle, int sensor, unsigned* celsius);
  int (*clock_reasons)(void* handle, unsigned long long* reasons);
};
// The state of CUDA's GPU number `ordinal`.
DeviceState gpu_state(const NvidiaDriver& driver, int ordinal);

} // namespace hydrascope
