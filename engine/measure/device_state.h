// What a processor's driver tells of it: a time is worth little without the clock it was taken at. Plain
// header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hydrascope {

struct DeviceState {
  std::string name;                                // as the maker has it
  std::optional<double> megahertz, most_megahertz; // now, and at most: a CPU's mean, a GPU's multiprocessors
  std::optional<double> celsius;
  std::string
      held_back; // what keeps a GPU's clock down: "power", "heat"; empty if nothing does, or nobody knows
};

// Of "auto" or "cpu", "cuda" or "cuda:i"; what nobody tells is left out. Throws as device_of.
DeviceState device_state(const std::string& device);

// "NVIDIA H100, 1755 of 1980 MHz, 61 °C, held back by power"; empty where nothing is known.
std::string text_of(const DeviceState& state);

// The CPU's, by the files of Linux: proc/cpuinfo, sys/devices/system/cpu/cpufreq, sys/class/thermal below
// `root`.
DeviceState cpu_state(const std::filesystem::path& root = "/");

// The functions of libcuda.so.1 and libnvidia-ml.so.1 that are asked; all return 0 for success.
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
// The GPU that CUDA counts as `ordinal`.
DeviceState gpu_state(const NvidiaDriver& driver, int ordinal);

} // namespace hydrascope
