#include "engine/run/quantities/measures.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/run/target.h"

namespace hydrascope {
namespace {

AttentionInput random_input() {
  AttentionInput input;
  input.q = at::randn({1, 2, 9, 4});
  input.k = at::randn({1, 2, 9, 4});
  input.v = at::randn({1, 2, 9, 4});
  input.layer_input = at::randn({1, 9, 8});
  return input;
}

TEST(Focus, ContributionsOfEveryKernelSumToOutTimesGradient) {
  for (const KernelInfo& info : kernel_infos()) {
    const auto kernel = make_kernel(KernelSpec{info.name, {}});
    const AttentionInput input = random_input();
    const KernelParameters parameters = kernel->initial_parameters({2, 4});
    const at::Tensor out = kernel->run(input, parameters).out;
    const at::Tensor g = at::randn({1, 2, 9, 4});
    const double everything = (out * g).sum().item<double>();
    for (const std::optional<std::int64_t> query : {std::optional<std::int64_t>(), {0}, {5}}) {
      const FocusMap map = focus_map(*kernel, input, parameters, out, g, query);
      ASSERT_EQ(map.contributions.sizes(), at::IntArrayRef({9})) << info.name;
      const double expected =
          query ? (out.select(2, *query) * g.select(2, *query)).sum().item<double>() : everything;
      const double scale = map.contributions.abs().sum().item<double>();
      EXPECT_NEAR(map.contributions.sum().item<double>(), expected, 1e-4 * scale) << info.name;
      EXPECT_NEAR(map.total, expected, 1e-4 * scale) << info.name;
      EXPECT_NEAR(map.share * everything, map.total, 1e-4 * scale) << info.name;
      EXPECT_FALSE(map.zero_gradient);
    }
  }
}

TEST(Focus, SaysWhereTheGradientIsZero) {
  const auto kernel = make_kernel(KernelSpec{});
  const AttentionInput input = random_input();
  at::Tensor g = at::zeros({1, 2, 9, 4});
  g.select(2, 0).fill_(1.0);
  const at::Tensor out = kernel->run(input, {}).out;
  EXPECT_FALSE(focus_map(*kernel, input, {}, out, g, 0).zero_gradient);
  EXPECT_NEAR(focus_map(*kernel, input, {}, out, g, 0).share, 1.0, 1e-6);
  const FocusMap other = focus_map(*kernel, input, {}, out, g, 3);
  EXPECT_TRUE(other.zero_gradient);
  EXPECT_EQ(other.contributions.abs().max().item<double>(), 0.0);
  EXPECT_EQ(other.share, 0.0);
}

TEST(Target, GradientsAreThoseOfTheFormula) {
  const at::AutoGradMode gradients(true);
  at::Tensor hidden = at::randn({1, 4, 3}).set_requires_grad(true);
  const at::Tensor unused = at::randn({2}).set_requires_grad(true);
  const auto found = gradients_at(norm_target(hidden), {hidden, unused});
  const at::Tensor expected = (hidden.detach().mean(1, true) / 4.0).expand({1, 4, 3});
  EXPECT_LT((found[0] - expected).abs().max().item<double>(), 1e-6);
  EXPECT_EQ(found[1].abs().max().item<double>(), 0.0);
}

TEST(Target, MeanPoolingLeavesPaddingOut) {
  const at::Tensor hidden = at::tensor({1.0F, 3.0F, NAN}).reshape({1, 3, 1});
  const at::Tensor mask = at::tensor({1, 1, 0}).to(at::kBool).unsqueeze(0);
  EXPECT_DOUBLE_EQ(mean_pooled(hidden, mask).item<double>(), 2.0);
}

TEST(Target, SimilarityOfASentenceWithItselfIsOneAndFlat) {
  const at::AutoGradMode gradients(true);
  at::Tensor hidden = at::randn({1, 4, 3}).set_requires_grad(true);
  const at::Tensor similarity = similarity_target(hidden, {}, mean_pooled(hidden));
  EXPECT_NEAR(similarity.item<double>(), 1.0, 1e-6);
  EXPECT_LT(gradients_at(similarity, {hidden})[0].abs().max().item<double>(),
            1e-6); // the other is a constant
}

TEST(Target, TheOneTokenThatItReads) {
  at::Tensor gradient = at::zeros({1, 5, 2});
  EXPECT_EQ(only_token_read(gradient), 0);
  gradient.select(1, 4).fill_(1.0);
  EXPECT_EQ(only_token_read(gradient), 4);
  gradient.select(1, 3).fill_(0.1);
  EXPECT_EQ(only_token_read(gradient), std::nullopt);
}

} // namespace
} // namespace hydrascope
