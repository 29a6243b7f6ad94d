#include "tests/support/devices.h"

#include "engine/attention/interface/device.h"
#include "tests/support/fake_device.h"

namespace hydrascope::test {

std::vector<c10::Device> devices() {
  std::vector<c10::Device> all{c10::kCPU, fake_device()};
  if (cuda_status().available) all.push_back(with_index(c10::kCUDA));
  return all;
}

} // namespace hydrascope::test
