#include "engine/measure/device_clock.h"

#include <chrono>
#include <thread>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

// A device whose time is a counter: what was ordered on its stream takes three milliseconds each, and is done
// only when an event is waited for.
struct CountingDevice final : c10::impl::DeviceGuardImplInterface {
  inline static int ordered = 0, waited = 0;

  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device getDevice() const override { return {type(), 0}; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag flag) const override {
    EXPECT_EQ(flag, c10::EventFlag::BACKEND_DEFAULT); // others keep no time
    *event = new int(ordered);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<int*>(event);
  }
  void synchronizeEvent(void*) const override { ++waited; }
  bool queryEvent(void*) const override { return waited > 0; }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    EXPECT_EQ(waited, 1);
    return 3.0 * (*static_cast<int*>(end) - *static_cast<int*>(begin));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, CountingDevice)

TEST(DeviceClock, AsksADeviceWithStreamsForItsOwnTime) {
  CountingDevice::waited = 0;
  const DeviceClock clock(c10::DeviceType::PrivateUse1);
  EXPECT_DOUBLE_EQ(clock.seconds([] { CountingDevice::ordered += 4; }), 0.012);
}

TEST(DeviceClock, OfTheCpuIsThatOfTheCall) {
  const DeviceClock clock(c10::kCPU);
  EXPECT_GE(clock.seconds([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }), 0.002);
  EXPECT_GT(free_bytes(c10::kCPU), 0);
}

} // namespace
} // namespace hydrascope
