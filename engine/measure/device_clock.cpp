#include "engine/measure/device_clock.h"

#include <chrono>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "engine/base/process.h"

namespace hydrascope {
namespace {

// "cuda" without an index is the current device.
c10::Device with_index(const c10::Device device) {
  if (device.is_cpu() || device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

} // namespace

DeviceClock::DeviceClock(const c10::Device device) : device_(with_index(device)) {}

double DeviceClock::seconds(const std::function<void()>& work) const {
  if (device_.is_cpu()) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  // PyTorch's default flag makes events without time.
  c10::Event begin(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  work();
  end.record(stream);
  end.synchronize();
  return 1e-3 * begin.elapsedTime(end);
}

std::int64_t free_bytes(const c10::Device device) {
  if (device.is_cpu()) return available_bytes();
  return static_cast<std::int64_t>(
      c10::getDeviceAllocator(device.type())->getMemoryInfo(with_index(device).index()).first);
}

} // namespace hydrascope
