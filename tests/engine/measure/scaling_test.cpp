// Time against N: what is measured, what is left out and why, and what stops it.
#include "engine/measure/scaling.h"

#include <limits>
#include <stop_token>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

const ScalingSetting small{.heads = 2, .head_width = 8, .image = false, .dtype = "float32", .threads = 1};
const ScalingLimits quick{
    .run_seconds = 10, .warm_up_seconds = 0, .point_seconds = 0, .least_runs = 3, .most_runs = 5};

TEST(ScalingTest, MeasuresAPointAfterARunThatWarmsUp) {
  ScalingMeasurer measurer({"linear-cosine", {{"heads", "4"}}}, small, quick);
  int asked = 0;
  const ScalingPoint point = measurer.measure(32, {}, [&] {
    ++asked;
    return std::uint64_t{0};
  });
  EXPECT_TRUE(point.skipped.empty());
  EXPECT_EQ(point.time.runs, 3);
  EXPECT_GE(point.time.p95, point.time.median);
  EXPECT_EQ(point.path, "fused cpu");
  EXPECT_EQ(point.products, 2.0 * 32 * 16 * 16 / 4); // 2·N·D²/heads
  EXPECT_EQ(asked, 2 * 4);                           // before and after each of four runs
}

TEST(ScalingTest, NoRunCountsDuringTheWarmUp) {
  ScalingLimits endless = quick;
  endless.warm_up_seconds = std::numeric_limits<double>::infinity();
  std::stop_source stop;
  int asked = 0;
  const auto stop_later = [&] {
    if (++asked == 40) stop.request_stop(); // four runs would be enough without a warm-up
    return std::uint64_t{0};
  };
  EXPECT_THROW(ScalingMeasurer({"elu", {}}, small, endless).measure(16, stop.get_token(), stop_later),
               Cancelled);
}

TEST(ScalingTest, EveryKernelIsMeasuredOnTextAndOnAGrid) {
  for (const bool image : {false, true}) {
    ScalingSetting setting = small;
    setting.image = image;
    for (const KernelInfo& info : kernel_infos()) {
      const ScalingPoint point = ScalingMeasurer({info.name, {}}, setting, quick).measure(24);
      EXPECT_EQ(point.skipped, "") << info.name;
      EXPECT_GE(point.time.runs, 3) << info.name;
    }
  }
}

TEST(ScalingTest, ARunThatWasDisturbedIsMadeAgain) {
  ScalingMeasurer measurer({"elu", {}}, small, quick);
  std::uint64_t disturbances = 0;
  int asked = 0;
  const ScalingPoint point = measurer.measure(16, {}, [&] {
    if (++asked <= 4) ++disturbances; // the first two runs see another number after them than before
    return disturbances;
  });
  EXPECT_EQ(point.time.runs, 3);
  EXPECT_EQ(asked, 2 * (2 + 4));
}

TEST(ScalingTest, SaysWhyThereIsNoTime) {
  const ScalingPoint unsupported = ScalingMeasurer({"cosformer", {{"m", "8"}}}, small, quick).measure(16);
  EXPECT_EQ(unsupported.time.runs, 0);
  EXPECT_NE(unsupported.skipped.find("m=8"), std::string::npos);

  ScalingSetting wide = small;
  wide.heads = 1 << 20;
  const ScalingPoint large = ScalingMeasurer({"hydra-cosine", {}}, wide, quick).measure(1 << 20);
  EXPECT_NE(large.skipped.find("GiB"), std::string::npos);

  ScalingSetting maps = small; // of few tokens the sums, d′ × d numbers a head, are what takes memory
  maps.heads = 1 << 12;
  maps.head_width = 1 << 12;
  EXPECT_NE(ScalingMeasurer({"taylor", {}}, maps, quick).measure(1).skipped.find("GiB"), std::string::npos);

  ScalingLimits hurried = quick;
  hurried.run_seconds = 0; // the second point is expected to take longer than that
  ScalingMeasurer measurer({"softmax", {}}, small, hurried);
  EXPECT_EQ(measurer.measure(16).skipped, "");
  EXPECT_NE(measurer.measure(32).skipped.find("a run would take"), std::string::npos);
}

TEST(ScalingTest, RefusesWhatIsNotThereAndStops) {
  EXPECT_THROW(ScalingMeasurer({"no-such", {}}, small), UsageError);
  ScalingSetting half = small;
  half.dtype = "float16";
  EXPECT_THROW(ScalingMeasurer({"softmax", {}}, half), UsageError);
  std::stop_source stop;
  stop.request_stop();
  ScalingMeasurer measurer({"softmax", {}}, small);
  EXPECT_THROW(measurer.measure(16, stop.get_token()), Cancelled);
}

TEST(RepeatedTimeTest, TakesTheNearestRank) {
  EXPECT_EQ(repeated_time({}).runs, 0);
  EXPECT_EQ(repeated_time({3}), (RepeatedTime{1, 3, 3}));
  EXPECT_EQ(repeated_time({4, 1, 3, 2}), (RepeatedTime{4, 2, 4}));
  std::vector<double> hundred;
  for (int i = 100; i > 0; --i) hundred.push_back(i);
  EXPECT_EQ(repeated_time(hundred), (RepeatedTime{100, 50, 95}));
}

} // namespace
} // namespace hydrascope
