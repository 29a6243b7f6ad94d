// Training with matrix products in bfloat16 and float16, on an accelerator by CUDA's rules of autocast.
#include "engine/training/loop/autocast.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/training/loop/loop.h"
#include "tests/engine/training/toy.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

using testing::ToyFolder;

TEST(TrainingAutocast, LearnsInLowerPrecision) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    for (const char* kernel : {"softmax", "hydra-cosine", "hedgehog", "elu"}) {
      SCOPED_TRACE(std::string(dtype) + " " + kernel);
      const ToyFolder folder;
      FinetuneRequest request = testing::toy_finetuning(folder);
      request.settings.epochs = 10;
      request.settings.execution.device = test::accelerator().str();
      request.settings.execution.dtype = "float32";
      request.schedule = ScheduleText{.replace = {std::string("back:1=") + kernel}};
      const TrainingOutcome whole = finetune(request);
      request.settings.execution.dtype = dtype;
      const TrainingOutcome outcome = finetune(request);
      EXPECT_GE(outcome.held_out.accuracy, 0.9);
      double losses = 0;
      for (std::size_t i = 0; i < 4; ++i) // later steps differ by what was learnt
        losses = std::max(losses, std::abs(outcome.curve[i].second - whole.curve[i].second));
      EXPECT_LT(losses, 0.05);
      EXPECT_GT(losses, 0); // it did compute in another type
    }
  }
}

TEST(TrainingAutocast, HasTheTypesOfTheDevice) {
  EXPECT_EQ(training::product_type("float16", test::accelerator()), at::kHalf);
  EXPECT_EQ(training::product_type("bfloat16", test::accelerator()), at::kBFloat16);
  EXPECT_EQ(training::product_type("auto", test::accelerator()),
            test::accelerator().is_cuda() ? at::kBFloat16 : at::kFloat);
  EXPECT_THROW(training::product_type("float16", at::kCPU), UsageError);
  EXPECT_THROW(training::product_type("float64", test::accelerator()), UsageError);
}

// Learns one number through float16, whose gradients overflow unless the loss is scaled by less than they
// are.
class SteepTask final : public training::TrainingTask {
public:
  explicit SteepTask(bool scales) : scales_(scales) {}

  const training::NamedTensors& leaves() const override { return leaves_; }
  std::string configuration() const override { return "steep"; }
  std::int64_t steps_per_epoch() const override { return 6; }
  std::int64_t items_of_step(std::int64_t) override { return 1; }
  double learning_rate(std::int64_t, std::int64_t) const override { return 0.125; }
  bool scales_loss() const override { return scales_; }
  at::Tensor loss(std::int64_t, const training::Gradients& gradients) override {
    ++computed_;
    const at::Tensor weight = leaves_.at("weight");
    const at::Tensor product = scales_ ? weight.to(at::kHalf).to(at::kFloat) : weight;
    const at::Tensor loss = (product * 32).sum();
    gradients.add(loss);
    return loss.detach().to(at::kDouble).view(1);
  }
  HeldOut validate() override { return {.loss = leaves_.at("weight").sum().item<double>()}; }
  HeldOutMeasure measure() const override { return HeldOutMeasure::accuracy; }
  double merit(const HeldOut& held_out) const override { return -held_out.loss; }
  void describe(const std::vector<double>&, TrainingProgress&) const override {}
  std::optional<training::AdapterRecord> record(const training::Checkpoint&, const HeldOut&) const override {
    return std::nullopt;
  }

  int computed() const { return computed_; }

private:
  bool scales_;
  int computed_ = 0;
  training::NamedTensors leaves_{
      {"weight", at::full({2, 2}, 1.0, at::TensorOptions(test::accelerator())).requires_grad_(true)}};
};

TEST(TrainingLossScale, IsHalvedUntilGradientsAreFinite) {
  TrainingSettings settings{.epochs = 1};
  SteepTask plain(false), scaled(true);
  const TrainingOutcome expected = training::run_training(plain, settings, {}, {}, {});
  const TrainingOutcome outcome = training::run_training(scaled, settings, {}, {}, {});
  EXPECT_EQ(plain.computed(), 6);
  EXPECT_EQ(scaled.computed(), 6 + 6) << "32 · 65,536 is beyond float16, 32 · 1,024 is not";
  if (!test::tests_are_on_gpu()) { // whose steps are no powers of two
    EXPECT_EQ(outcome.curve, expected.curve) << "powers of two lose nothing";
    return;
  }
  ASSERT_EQ(outcome.curve.size(), expected.curve.size());
  for (std::size_t i = 0; i < expected.curve.size(); ++i)
    EXPECT_NEAR(outcome.curve[i].second, expected.curve[i].second, 1e-3);
}

} // namespace
} // namespace hydrascope
