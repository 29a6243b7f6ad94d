// The devices that tests of whole models run on.
#pragma once

#include <vector>

#include <c10/core/Device.h>

namespace hydrascope::test {

// The CPU, the fake device (fake_device.h) where it is registered, and an NVIDIA GPU where there is one.
std::vector<c10::Device> devices();

// The accelerator that tests compare with the CPU: the GPU where HYDRASCOPE_DEVICE names one, else the fake
// device, which alone counts what the host waits for.
c10::Device accelerator();

} // namespace hydrascope::test
