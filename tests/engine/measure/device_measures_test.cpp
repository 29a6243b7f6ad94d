// Measurements on an accelerator against the same on the CPU.
#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/measure/generation_speed.h"
#include "engine/measure/machine.h"
#include "engine/measure/scaling.h"
#include "engine/measure/teacher_forced.h"
#include "engine/measure/throughput.h"
#include "engine/run/generate.h"
#include "engine/run/placement.h"
#include "tests/engine/attention/broken_kernels.h"
#include "tests/engine/training/toy.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith, ::testing::ThrowsMessage;
using testing::make_toy_model;
using testing::toy_measuring;
using testing::ToyFolder;

Placement on_device() { return {test::accelerator(), c10::kFloat}; }

// A GPU sums products in another order.
double score_tolerance() { return test::tests_are_on_gpu() ? 1e-5 : 1e-6; }

void expect_same(const KernelMeans& actual, const KernelMeans& expected) {
  for (const auto member :
       {&KernelMeans::kl, &KernelMeans::entropy, &KernelMeans::spearman, &KernelMeans::clamped_share,
        &KernelMeans::ratio, &KernelMeans::cosine, &KernelMeans::relative_error}) {
    if (std::isnan(expected.*member))
      EXPECT_TRUE(std::isnan(actual.*member));
    else
      EXPECT_NEAR(actual.*member, expected.*member, 1e-4 * std::max(1.0, std::abs(expected.*member)));
  }
}

TEST(TeacherForcedOnDevice, GivesTheMeansOfTheCpu) {
  const ToyFolder folder;
  TeacherForcedRequest request =
      toy_measuring(folder, "softmax,elu,relu,hedgehog,performer,cosformer,taylor,hydra-cosine,local-window");
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{12}}) {
    request.lengths = lengths;
    const TeacherForcedOutcome host = measure_teacher_forced(request);
    const TeacherForcedOutcome device = measure_teacher_forced_in(on_device(), request);
    ASSERT_EQ(device.measures.size(), host.measures.size());
    for (std::size_t i = 0; i < host.measures.size(); ++i) {
      SCOPED_TRACE(host.measures[i].kernel.text());
      expect_same(device.measures[i].mean, host.measures[i].mean);
      EXPECT_EQ(device.measures[i].zero_denominators, host.measures[i].zero_denominators);
      ASSERT_EQ(device.measures[i].layers.size(), host.measures[i].layers.size());
      for (std::size_t layer = 0; layer < host.measures[i].layers.size(); ++layer)
        expect_same(device.measures[i].layers[layer], host.measures[i].layers[layer]);
    }
    for (std::size_t i = 0; i < host.scores.size(); ++i)
      for (std::size_t layer = 0; layer < host.scores[i].layers.size(); ++layer)
        for (std::size_t head = 0; head < host.scores[i].layers[layer].size(); ++head) {
          const HeadScores &actual = device.scores[i].layers[layer][head],
                           &expected = host.scores[i].layers[layer][head];
          EXPECT_NEAR(actual.smallest, expected.smallest,
                      score_tolerance() * std::max(1.0, std::abs(expected.smallest)));
          EXPECT_NEAR(actual.largest, expected.largest,
                      score_tolerance() * std::max(1.0, std::abs(expected.largest)));
          EXPECT_NEAR(actual.share_below, expected.share_below, 1e-6);
        }
  }
}

TEST(ThroughputOnDevice, TimesModelsWithoutWaitingWithinThem) {
  const ToyFolder folder;
  ThroughputRequest request;
  request.model_folder = make_toy_model(folder, "dinov2");
  request.schedules = {ScheduleText{}, ScheduleText{.kernel = "hydra-cosine"}};
  request.batches = {2};
  request.warm_ups = 0;
  request.runs = 1;
  measure_throughput_in(on_device(), request);
  request.runs = 3;
  const test::DeviceCounter counter;
  const auto rows = measure_throughput_in(on_device(), request);
  ASSERT_EQ(rows.size(), 5U);
  for (const ThroughputRow& row : rows) EXPECT_GT(row.items_per_second, 0);
  // Five contenders of three runs: one event each, and those of blocks where the run is observed.
  EXPECT_LE(counter.counts().waits(), 5 * 3 + 3 + 2);
}

TEST(ThroughputOnDevice, AsksForARestartWhereTheDeviceDoesNoFurtherWork) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  const ToyFolder folder;
  ThroughputRequest request;
  request.model_folder = make_toy_model(folder, "dinov2");
  request.schedules = {ScheduleText{.kernel = "hydra-cosine"}};
  request.batches = {2};
  const testing_inputs::BrokenKernels broken;
  EXPECT_THAT([&] { measure_throughput_in(on_device(), request); },
              ThrowsMessage<Error>(AllOf(HasSubstr("illegal memory access"), Not(HasSubstr("\n")),
                                         HasSubstr("; restart the program"))));
}

TEST(ThroughputOnDevice, NamesTheDeviceWhoseMemoryDoesNotSuffice) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const ToyFolder folder;
  ThroughputRequest request;
  request.model_folder = make_toy_model(folder, "dinov2");
  request.schedules = {ScheduleText{}};
  request.batches = {2};
  const test::DeviceMemoryLimit limit(0);
  EXPECT_THAT([&] { measure_throughput_in(on_device(), request); },
              ThrowsMessage<Error>(AllOf(HasSubstr("out of memory on fake:0"), HasSubstr("--batch"))));
}

TEST(GenerationSpeedOnDevice, NamesTheDeviceWhoseMemoryDoesNotSuffice) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const ToyFolder folder;
  GenerationSpeedRequest request;
  request.model_folder = make_toy_model(folder, "written");
  request.adapters.automatic = false;
  request.contexts = {16};
  request.tokens = 4;
  request.execution.device = "fake";
  const test::DeviceMemoryLimit limit(0);
  EXPECT_THAT([&] { measure_generation_speed(request); },
              ThrowsMessage<Error>(AllOf(HasSubstr("out of memory on fake:0"), HasSubstr("contexts"))));
}

TEST(GenerationOnDevice, NamesTheDeviceWhoseMemoryDoesNotSuffice) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const ToyFolder folder;
  GenerateRequest request;
  request.model_folder = make_toy_model(folder, "written");
  request.adapters.automatic = false;
  request.text = "the cat";
  request.tokens = 8;
  request.stop_at_end = false;
  request.execution.device = "fake";
  const auto says_so = ThrowsMessage<Error>(
      AllOf(StartsWith("generate: out of memory on fake:0"), HasSubstr("; use a linear")));
  const auto models = make_model_store();
  // As the window writes: token by token.
  Generation begun(request, *models);
  ASSERT_TRUE(begun.advance());
  const test::DeviceMemoryLimit limit(0);
  EXPECT_THAT([&] { generate(request); }, says_so);
  EXPECT_THAT([&] { begun.advance(); }, says_so);
}

TEST(TeacherForcedOnDevice, NamesTheDeviceWhoseMemoryDoesNotSuffice) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const ToyFolder folder;
  const TeacherForcedRequest request = toy_measuring(folder, "softmax,elu");
  const test::DeviceMemoryLimit limit(0);
  EXPECT_THAT([&] { measure_teacher_forced_in(on_device(), request); },
              ThrowsMessage<Error>(AllOf(StartsWith("kl: out of memory on fake:0"), HasSubstr("--lengths"))));
}

TEST(ScalingOnDevice, EndsWhereTheDeviceDoesNoFurtherWork) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's kernels can be broken";
  const testing_inputs::BrokenKernels broken;
  ScalingMeasurer measurer({"hydra-cosine", {}}, {.heads = 2, .head_width = 8, .device = "fake"});
  EXPECT_THAT(
      [&] { measurer.measure(16); },
      ThrowsMessage<BrokenDevice>(AllOf(HasSubstr("hydra-cosine: CUDA error: an illegal memory access"),
                                        HasSubstr("; restart the program"), Not(HasSubstr("\n")))));
}

TEST(ScalingOnDevice, LeavesOutWhatTheMemoryDoesNotHold) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  ScalingMeasurer measurer({"hydra-cosine", {}}, {.heads = 2, .head_width = 8, .device = "fake"});
  const test::DeviceMemoryLimit limit(0);
  EXPECT_EQ(measurer.measure(16).skipped, "out of memory on fake:0");
}

TEST(LimitsOfADevice, ThatItsMemoryDoesNotHoldAreNamed) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "only the fake device's memory can be limited";
  const test::DeviceMemoryLimit limit(0);
  const auto says_so = [](const char* name) {
    return ThrowsMessage<Error>(StartsWith(std::string(name) + " of fake: out of memory on fake:0; end "));
  };
  EXPECT_THAT([] { triad_bandwidth(1 << 16, "fake"); }, says_so("triad bandwidth"));
  EXPECT_THAT([] { read_bandwidth(1 << 16, "fake"); }, says_so("read bandwidth"));
}

} // namespace
} // namespace hydrascope
