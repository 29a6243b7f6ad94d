// Time and free memory of the device that computes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

namespace hydrascope {

// Marks in the work of a device, and the seconds between them. On the CPU work is done when the call returns;
// a GPU only has it queued then, and is measured by events on the current stream.
class DeviceTimeline {
public:
  explicit DeviceTimeline(c10::Device device);

  // Marks the end of the work so far. Returns the mark's index.
  std::size_t mark();
  // Waits for the device if it has not reached the last mark. Throws c10::Error of the device.
  double seconds(std::size_t from, std::size_t to);

private:
  c10::Device device_;
  std::vector<std::chrono::steady_clock::time_point> times_; // of the CPU
  std::vector<c10::Event> events_;                           // of other devices
  std::size_t reached_ = 0;                                  // this many events have been waited for
};

// Measures work in seconds.
class DeviceClock {
public:
  explicit DeviceClock(const c10::Device device) : device_(device) {}

  // Throws what `work` throws, and c10::Error of the device.
  double seconds(const std::function<void()>& work) const;

private:
  c10::Device device_;
};

// Bytes of free memory, with what LibTorch's allocator keeps for reuse; 0 if unknown. The CPU's allocator
// returns what it keeps to the system if fewer than `wanted` bytes are free, and they are counted then.
std::int64_t free_bytes(c10::Device device, double wanted = 0);

// The memory of a device other than the CPU; all 0 for the CPU.
struct DeviceMemory {
  std::int64_t peak = 0;  // bytes of tensors at once since reset_peak_memory(), all models included
  std::int64_t total = 0; // bytes that the device has
};
DeviceMemory device_memory(c10::Device device);
void reset_peak_memory(c10::Device device);

} // namespace hydrascope
