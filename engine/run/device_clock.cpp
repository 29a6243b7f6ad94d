#include "engine/run/device_clock.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "engine/attention/interface/device.h"
#include "engine/base/process.h"

namespace hydrascope {

DeviceTimeline::DeviceTimeline(const c10::Device device) : device_(with_index(device)) {}

std::size_t DeviceTimeline::mark() {
  if (device_.is_cpu()) {
    times_.push_back(std::chrono::steady_clock::now());
    return times_.size() - 1;
  }
  // PyTorch's default flag makes events without time.
  c10::Event& event = events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return events_.size() - 1;
}

double DeviceTimeline::seconds(const std::size_t from, const std::size_t to) {
  if (device_.is_cpu()) return std::chrono::duration<double>(times_.at(to) - times_.at(from)).count();
  if (reached_ < events_.size()) {
    events_.back().synchronize();
    reached_ = events_.size();
  }
  return 1e-3 * events_.at(from).elapsedTime(events_.at(to));
}

double DeviceClock::seconds(const std::function<void()>& work) const {
  DeviceTimeline timeline(device_);
  const std::size_t begin = timeline.mark();
  work();
  const std::size_t end = timeline.mark();
  return timeline.seconds(begin, end);
}

std::int64_t free_bytes(const c10::Device device) {
  if (device.is_cpu()) return available_bytes();
  return static_cast<std::int64_t>(
      c10::getDeviceAllocator(device.type())->getMemoryInfo(with_index(device).index()).first);
}

} // namespace hydrascope
