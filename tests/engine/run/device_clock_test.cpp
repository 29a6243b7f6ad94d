#include "engine/run/device_clock.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

TEST(DeviceClock, AsksADeviceWithStreamsForItsOwnTime) {
  const DeviceClock clock(test::fake_device().type());
  const test::DeviceCounter counter;
  const double seconds = clock.seconds([] { test::advance_device(1000); });
  EXPECT_GE(seconds, 1000);
  EXPECT_LT(seconds, 1100); // the host's own time is small
  EXPECT_EQ(counter.counts().synchronised, 1);
}

TEST(DeviceClock, OfTheCpuIsThatOfTheCall) {
  const DeviceClock clock(c10::kCPU);
  EXPECT_GE(clock.seconds([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }), 0.002);
}

TEST(FreeBytes, AreThoseOfTheDevice) {
  EXPECT_GT(free_bytes(c10::kCPU), 0);
  EXPECT_GT(free_bytes(test::fake_device()), 0);
  EXPECT_LE(free_bytes(test::fake_device()), std::int64_t{4} << 30);
}

} // namespace
} // namespace hydrascope
