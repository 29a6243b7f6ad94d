#include "tests/support/devices.h"

#include <string>

#include "engine/attention/interface/device.h"
#include "engine/base/process.h"
#include "tests/support/fake_device.h"

namespace hydrascope::test {
namespace {

// LibTorch remembers its first answer about CUDA: it is loaded before a test can ask.
[[maybe_unused]] const bool cuda_first = !tests_are_on_gpu() || cuda_status().available;

} // namespace

std::vector<c10::Device> devices() {
  std::vector<c10::Device> all{c10::kCPU};
  if (!tests_are_on_gpu()) all.push_back(fake_device());
  if (cuda_status().available) all.push_back(with_index(c10::kCUDA));
  return all;
}

c10::Device accelerator() {
  return tests_are_on_gpu() ? device_of(environment("HYDRASCOPE_DEVICE")) : fake_device();
}

} // namespace hydrascope::test
