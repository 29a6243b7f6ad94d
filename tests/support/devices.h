// The devices that tests of whole models run on.
#pragma once

#include <vector>

#include <c10/core/Device.h>

namespace hydrascope::test {

// The CPU, the fake device (fake_device.h) and, where there is one, an NVIDIA GPU.
std::vector<c10::Device> devices();

} // namespace hydrascope::test
