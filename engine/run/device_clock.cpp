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

namespace {

// Null where nothing has been allocated yet, and so nothing is to be told.
c10::DeviceAllocator* used_allocator(const c10::Device device) {
  if (device.is_cpu()) return nullptr;
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(device.type());
  return allocator->initialized() ? allocator : nullptr;
}

constexpr auto all_pools = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

} // namespace

std::int64_t free_bytes(const c10::Device device, const double wanted) {
  if (device.is_cpu()) {
    const std::int64_t bytes = available_bytes();
    if (static_cast<double>(bytes) >= wanted) return bytes;
    release_freed_memory();
    return available_bytes();
  }
  const c10::DeviceIndex index = with_index(device).index();
  auto bytes = static_cast<std::int64_t>(c10::getDeviceAllocator(device.type())->getMemoryInfo(index).first);
  if (c10::DeviceAllocator* const allocator = used_allocator(device)) {
    const auto stats = allocator->getDeviceStats(index);
    bytes += stats.reserved_bytes[all_pools].current - stats.allocated_bytes[all_pools].current;
  }
  return bytes;
}

DeviceMemory device_memory(const c10::Device device) {
  c10::DeviceAllocator* const allocator = used_allocator(device);
  if (allocator == nullptr) return {};
  const c10::DeviceIndex index = with_index(device).index();
  return {allocator->getDeviceStats(index).allocated_bytes[all_pools].peak,
          static_cast<std::int64_t>(allocator->getMemoryInfo(index).second)};
}

void reset_peak_memory(const c10::Device device) {
  if (c10::DeviceAllocator* const allocator = used_allocator(device))
    allocator->resetPeakStats(with_index(device).index());
}

} // namespace hydrascope
