// How far the host runs ahead of a device, and how soon a stop takes effect.
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"
#include "engine/run/target.h"
#include "tests/engine/run/fake_model.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

const Placement on_fake_device{test::fake_device(), c10::kFloat};

std::shared_ptr<const FakeModel> model_of(const int layers, std::function<void(int)> before_block = {}) {
  FakeOptions options;
  options.layers = layers;
  options.before_block = std::move(before_block);
  return std::make_shared<const FakeModel>(options);
}

// What a second, equal run asks of the device; the first one moves the model. Nothing is cached.
test::DeviceCounts counts_of(const int layers, const std::stop_token& stop) {
  Runner runner(0, fake_source(model_of(layers)));
  const RunRequest request = fake_request("the cat sat on the warm mat");
  runner.run_in(on_fake_device, request);
  const test::DeviceCounter counter;
  runner.run_in(on_fake_device, request, stop);
  return counter.counts();
}

TEST(DeviceQueue, HoldsTwoBlocksAtMostWhereARunCanBeStopped) {
  const std::stop_source source;
  const test::DeviceCounts two = counts_of(2, source.get_token()), many = counts_of(12, source.get_token()),
                           free = counts_of(12, {});
  const std::int64_t block = (many.operators - two.operators) / 10;
  // Beside two blocks: what precedes the first one, or follows the last one.
  EXPECT_LE(many.most_ahead, two.operators);
  EXPECT_GT(free.most_ahead, 12 * block);
  EXPECT_EQ(many.paced, 12 - 2);
  EXPECT_EQ(free.paced, 0);
  EXPECT_EQ(many.waits(), free.waits()); // until the device is idle
}

TEST(DeviceQueue, OfTheCpuIsNone) {
  const std::stop_source source;
  Runner runner(0, fake_source(model_of(4)));
  const test::DeviceCounter counter;
  runner.run_in({}, fake_request("a b c"), source.get_token());
  EXPECT_EQ(counter.counts().paced + counter.counts().operators, 0);
}

TEST(DeviceQueue, AStopEndsTheForwardPassBeforeTheNextBlock) {
  for (const Placement& placement : {Placement{}, on_fake_device}) {
    std::stop_source source;
    int blocks = 0;
    Runner runner(0, fake_source(model_of(12, [&](int layer) {
                    ++blocks;
                    if (layer == 3) source.request_stop();
                  })));
    EXPECT_THROW(runner.run_in(placement, fake_request("a b c"), source.get_token()), Cancelled);
    EXPECT_EQ(blocks, 4) << placement.device_name();
  }
}

// The gradient at the first layer's attention, of a stop requested after the forward pass.
TEST(DeviceQueue, AStopEndsTheBackwardPassToo) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "LibTorch takes gradients on one accelerator alone";
  constexpr int layers = 12;
  for (const Placement& placement : {Placement{}, on_fake_device}) {
    for (const bool stopped : {false, true}) {
      const at::NoGradGuard no_gradients;
      const auto model = placed(std::shared_ptr<const Model>(model_of(layers)), placement);
      const std::vector<KernelSpec> softmax(layers);
      Pass pass = plain_pass(model, layer_kernels(*model, softmax), {});
      pass.input.input = placed(*model, model->prepare_text("the cat sat", {}));
      pass.first_gradient_layer = 0;
      pass.tapped.assign(layers, false);
      pass.tapped[0] = true;
      std::stop_source source;
      at::Tensor point;
      const PassOutcome outcome = run_pass(pass, source.get_token(),
                                           [&](int /*layer*/, const AttentionTap& tap) { point = tap.out; });
      if (stopped) source.request_stop();
      at::Tensor target;
      {
        const at::AutoGradMode gradients(true);
        target = outcome.output.sum();
      }
      const test::DeviceCounter counter;
      if (!stopped) {
        EXPECT_TRUE(gradients_at(target, {point}).front().defined());
        EXPECT_TRUE(placement.device.is_cpu() || counter.counts().paced >= layers - 3);
        continue;
      }
      EXPECT_THROW(gradients_at(target, {point}), Cancelled) << placement.device_name();
    }
  }
}

} // namespace
} // namespace hydrascope
