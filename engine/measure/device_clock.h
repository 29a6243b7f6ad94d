// Time as the device that computes has it.
#pragma once

#include <cstdint>
#include <functional>

#include <c10/core/Device.h>

namespace hydrascope {

// Seconds that work takes. The CPU has done it when the call returns; a GPU only takes orders then, so that
// it is asked itself: by one event before the work and one after, on the current stream.
class DeviceClock {
public:
  explicit DeviceClock(c10::Device device);

  // Throws what `work` throws, and c10::Error of the device.
  double seconds(const std::function<void()>& work) const;

private:
  c10::Device device_;
};

// Bytes that the device has free; 0 where that is not known.
std::int64_t free_bytes(c10::Device device);

} // namespace hydrascope
