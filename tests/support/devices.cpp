#include "tests/support/devices.h"

#include <string>

#include <c10/core/DeviceType.h>

#include "engine/attention/interface/device.h"
#include "engine/base/process.h"
#include "tests/support/fake_device.h"

namespace hydrascope::test {
namespace {

bool on_gpu() { return environment("HYDRASCOPE_DEVICE").starts_with("cuda"); }

// LibTorch remembers its first answer about CUDA: it is loaded before a test can ask.
[[maybe_unused]] const bool cuda_first = !on_gpu() || cuda_status().available;

} // namespace

std::vector<c10::Device> devices() {
  std::vector<c10::Device> all{c10::kCPU};
  if (c10::is_privateuse1_backend_registered()) all.push_back(fake_device());
  if (cuda_status().available) all.push_back(with_index(c10::kCUDA));
  return all;
}

c10::Device accelerator() { return on_gpu() ? device_of(environment("HYDRASCOPE_DEVICE")) : fake_device(); }

} // namespace hydrascope::test
