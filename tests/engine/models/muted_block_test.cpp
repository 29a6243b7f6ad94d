// Muting heads changes nothing about how a block computes: the kernel's leading maps are folded all the same.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "engine/models/transformer/model.h"
#include "tests/engine/models/golden.h"

namespace hydrascope {
namespace {

using test::golden_folder;

// A hedgehog that notes which maps it is asked to apply itself.
class Witness final : public Kernel {
public:
  Witness() : Kernel(KernelSpec{"hedgehog", {}}), kernel_(make_kernel(spec())) {}

  Plan plan(const AttentionShape& shape) const override { return kernel_->plan(shape); }
  KernelParameters initial_parameters(const HeadShape& shape, int layer) const override {
    return kernel_->initial_parameters(shape, layer);
  }
  std::optional<LeadingMaps> leading_maps(const HeadShape& shape,
                                          const KernelParameters& parameters) const override {
    return kernel_->leading_maps(shape, parameters);
  }
  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override {
    return kernel_->weights(input, parameters, rows);
  }
  Cost cost(const AttentionShape& shape) const override { return kernel_->cost(shape); }

  mutable bool maps_itself = false;

protected:
  AttentionOutput compute(Path, const AttentionInput& input,
                          const KernelParameters& parameters) const override {
    const auto map = parameters.find("query_map.weight");
    maps_itself = map != parameters.end() && map->second.defined();
    return kernel_->run(input, parameters);
  }

private:
  std::unique_ptr<Kernel> kernel_;
};

TEST(MutedBlock, FoldsTheKernelsMapsIntoTheProjections) {
  const at::NoGradGuard no_gradients;
  const auto model = load_model(golden_folder() / "models" / "bert");
  const ModelInfo& info = model->info();
  const Witness kernel;
  KernelParameters parameters = kernel.initial_parameters({info.heads, info.width / info.heads}, 0);
  for (auto& [name, map] : parameters) map = map * 1.5;
  const ModelInput input = model->prepare_text("the cat sat");
  const at::Tensor hidden = model->embed(input);
  const std::vector<int> muted = {1};
  const auto run = [&](const BlockOptions& options) {
    return model->block(0, hidden, input, kernel, parameters, options);
  };
  const at::Tensor first = run({.muted = muted});
  EXPECT_TRUE(kernel.maps_itself); // folding pays from the second run on
  const at::Tensor second = run({.muted = muted});
  EXPECT_FALSE(kernel.maps_itself);
  EXPECT_LT((second - first).abs().max().item<double>(), 1e-5);
  const at::Tensor heard = run({});
  EXPECT_FALSE(kernel.maps_itself); // one folding serves both
  EXPECT_GT((heard - first).abs().max().item<double>(), 1e-3);
}

} // namespace
} // namespace hydrascope
