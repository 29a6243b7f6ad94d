// Time and free memory of the device that computes.
#pragma once

#include <cstdint>
#include <functional>

#include <c10/core/Device.h>

namespace hydrascope {

// Measures work in seconds. On the CPU the work is done when the call returns; a GPU only has it queued then,
// and is measured by two events on the current stream, one before the work and one after.
class DeviceClock {
public:
  explicit DeviceClock(c10::Device device);

  // Throws what `work` throws, and c10::Error of the device.
  double seconds(const std::function<void()>& work) const;

private:
  c10::Device device_;
};

// Bytes of free memory; 0 if unknown.
std::int64_t free_bytes(c10::Device device);

} // namespace hydrascope
