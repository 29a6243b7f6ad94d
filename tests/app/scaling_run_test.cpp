// Attention against N is measured in the background, while the model does not compute.
#include "app/jobs/scaling_run.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

class ScalingRunTest : public ::testing::Test {
protected:
  ScalingRunTest() { editor_.set_initial(small_document()); }

  bool has_limits() const { return editor_.scaling.limits != MachineLimits{}; }

  Editor editor_;
  ScalingRun run_{{}};
};

TEST_F(ScalingRunTest, LimitsThatTheModelDisturbedAreMeasuredAgain) {
  using namespace std::chrono_literals;
  run_.start(editor_);
  std::this_thread::sleep_for(20ms); // measuring them takes some hundreds
  for (int i = 0; i < 200; ++i) {
    run_.update(editor_, /*interactive_run=*/true);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(has_limits());
  for (int i = 0; i < 6000 && !has_limits(); ++i) {
    run_.update(editor_, false);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(has_limits());
  run_.stop(editor_);
}

} // namespace
} // namespace hydrascope::app::tests
