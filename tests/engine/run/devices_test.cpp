#include "engine/run/devices.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "engine/attention/interface/device.h"
#include "engine/base/error.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

TEST(Devices, AreListedOrItIsSaidWhyThereIsNone) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "the fake device is not registered";
  const DeviceList list = list_devices();
  EXPECT_EQ(list.no_cuda, cuda_status().reason);
  EXPECT_EQ(std::ranges::any_of(list.accelerators,
                                [](const DeviceFacts& device) { return device.name == "cuda:0"; }),
            cuda_status().available);
  const auto fake = std::ranges::find(list.accelerators, "fake:0", &DeviceFacts::name);
  ASSERT_NE(fake, list.accelerators.end());
  EXPECT_EQ(fake->bytes, std::int64_t{4} << 30);
  EXPECT_EQ(text_of(*fake), "fake:0, 4.3 GB");
  EXPECT_EQ(text_of({.name = "cuda:1", .model = "NVIDIA H100 80GB HBM3", .bytes = 85'000'000'000}),
            "cuda:1, NVIDIA H100 80GB HBM3, 85.0 GB");
}

TEST(Devices, OfOtherBackEndsHaveTheirNames) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "the fake device is not registered";
  EXPECT_EQ(device_of("fake"), test::fake_device());
  EXPECT_EQ(device_of("fake:0"), test::fake_device());
  EXPECT_THROW(device_of("fake:1"), Error);
  EXPECT_THROW(device_of("fake:x"), UsageError);
  EXPECT_THROW(device_of("faked"), UsageError);
}

TEST(Devices, SayWhyTheyCannotBeUsed) {
  const DeviceList list{.accelerators = {{.name = "cuda:0"}, {.name = "cuda:1", .unusable = "it is too old"}},
                        .automatic = "cuda:1"};
  for (const char* name : {"auto", "cpu"}) EXPECT_EQ(why_unusable(nullptr, name), "");
  EXPECT_EQ(listed_name(nullptr, "auto"), "cpu");
  EXPECT_EQ(listed_name(&list, "auto"), "cuda:1");
  EXPECT_EQ(listed_name(&list, "cuda"), "cuda:0");
  EXPECT_EQ(why_unusable(&list, "auto"), "it is too old");
  EXPECT_EQ(why_unusable(nullptr, "cuda:0"), "the devices are being looked for");
  EXPECT_EQ(why_unusable(&list, "cuda:0"), "");
  EXPECT_EQ(why_unusable(&list, "cuda"), "");
  EXPECT_EQ(why_unusable(&list, "cuda:1"), "it is too old");
  EXPECT_EQ(why_unusable(&list, "cuda:2"), "there is no device cuda:2");
  const DeviceList none{.no_cuda = "no driver was found"};
  EXPECT_EQ(why_unusable(&none, "cuda:1"), "there is no CUDA here: no driver was found");
}

TEST(Devices, NeedCodeOfTheirGeneration) {
  const std::string flags =
      "-gencode;arch=compute_75,code=sm_75;-gencode;arch=compute_86,code=sm_86;"
      "-gencode;arch=compute_90,code=sm_90";
  EXPECT_EQ(why_not_compiled_for(flags, 7, 5), "");
  EXPECT_EQ(why_not_compiled_for(flags, 8, 9), ""); // by the code for 8.6
  EXPECT_EQ(why_not_compiled_for(flags, 9, 0), "");
  EXPECT_EQ(why_not_compiled_for(flags, 6, 1), "LibTorch is not compiled for GPUs of compute capability 6.1");
  EXPECT_NE(why_not_compiled_for(flags, 8, 0), ""); // newer code of its generation does not run
  EXPECT_NE(why_not_compiled_for(flags, 12, 0), "");
  EXPECT_EQ(why_not_compiled_for(flags + ";-gencode;arch=compute_90,code=compute_90", 12, 0), "");
  EXPECT_EQ(why_not_compiled_for("nothing is known", 6, 1), "");
}

} // namespace
} // namespace hydrascope
