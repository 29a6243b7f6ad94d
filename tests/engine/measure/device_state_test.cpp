#include "engine/measure/machine.h"

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(DeviceState, OfTheCpuIsWhatLinuxTells) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "device_state";
  std::filesystem::remove_all(root);
  EXPECT_EQ(text_of(cpu_state(root)), "");
  write(root / "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: An Ordinary CPU\ncpu MHz\t\t: 2000.0\n\n"
        "processor\t: 1\nmodel name\t: An Ordinary CPU\ncpu MHz\t\t: 3000.0\n");
  EXPECT_EQ(text_of(cpu_state(root)), "An Ordinary CPU, 2500 MHz");
  write(root / "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "3700000\n");
  write(root / "sys/class/thermal/thermal_zone0/type", "acpitz\n");
  write(root / "sys/class/thermal/thermal_zone0/temp", "99000\n");
  write(root / "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  write(root / "sys/class/thermal/thermal_zone1/temp", "61000\n");
  EXPECT_EQ(text_of(cpu_state(root)), "An Ordinary CPU, 2500 of 3700 MHz, 61 °C");
  std::filesystem::remove_all(root);
}

// A driver that knows one GPU, the second of CUDA's, and answers as NVML does.
NvidiaDriver one_gpu() {
  return {
      .device_get = [](int* device, int ordinal) { return *device = 7, ordinal == 1 ? 0 : 101; },
      .bus_id =
          [](char* text, int length, int device) {
            if (device != 7 || length < 13) return 1;
            std::strcpy(text, "0000:1b:00.0");
            return 0;
          },
      .handle_of_bus =
          [](const char* bus, void** handle) {
            static int gpu = 0;
            *handle = &gpu;
            return std::strcmp(bus, "0000:1b:00.0") == 0 ? 0 : 2;
          },
      .name =
          [](void*, char* text, unsigned) {
            std::strcpy(text, "A GPU");
            return 0;
          },
      .clock = [](void*, int kind, unsigned* megahertz) { return *megahertz = 1755, kind == 1 ? 0 : 2; },
      .most_clock = [](void*, int, unsigned* megahertz) { return *megahertz = 1980, 0; },
      .temperature = [](void*, int, unsigned* celsius) { return *celsius = 61, 0; },
      .clock_reasons = [](void*, unsigned long long* reasons) { return *reasons = 0x04 | 0x40 | 0x01, 0; }};
}

TEST(DeviceState, OfAGpuIsWhatItsDriverTells) {
  EXPECT_EQ(text_of(gpu_state(one_gpu(), 1)), "A GPU, 1755 of 1980 MHz, 61 °C, held back by power and heat");
  EXPECT_EQ(text_of(gpu_state(one_gpu(), 0)), "");
  NvidiaDriver reticent = one_gpu();
  reticent.clock_reasons = [](void*, unsigned long long*) { return 3; }; // not supported
  reticent.most_clock = [](void*, int, unsigned*) { return 3; };
  EXPECT_EQ(text_of(gpu_state(reticent, 1)), "A GPU, 1755 MHz, 61 °C");
}

TEST(DeviceState, OfNoDeviceIsAnError) { EXPECT_THROW(device_state("abacus"), UsageError); }

} // namespace
} // namespace hydrascope
