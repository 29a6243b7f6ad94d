// The loss that distils maps, against its definition in float64.
#include "engine/training/tasks/distillation_loss.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "engine/run/run.h"

namespace hydrascope {
namespace {

struct Example {
  AttentionInput input;
  KernelParameters parameters;
};

// 4 heads of 8, 3 items of 150 tokens: more than two tiles of causal rows. Without causality the last tokens
// of two items are padding.
Example example(const bool causal) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(11);
  const auto random = [&](const at::IntArrayRef shape, const double scale) {
    return at::randn(shape, generator) * scale;
  };
  Example made;
  made.input.q = random({3, 4, 150, 8}, 1);
  made.input.k = random({3, 4, 150, 8}, 1);
  made.input.v = random({3, 4, 150, 8}, 1);
  made.input.causal = causal;
  if (!causal) {
    made.input.mask = at::ones({3, 150}, at::kBool);
    made.input.mask.select(0, 0).slice(0, 120).fill_(false);
    made.input.mask.select(0, 2).slice(0, 31).fill_(false);
  }
  for (const char* side : {"query", "key"}) {
    made.parameters[std::string(side) + "_map.weight"] =
        (at::eye(8) + random({4, 8, 8}, 0.1)).requires_grad_(true);
    made.parameters[std::string(side) + "_map.bias"] = random({4, 8}, 0.1).requires_grad_(true);
  }
  return made;
}

at::Tensor mapped(const at::Tensor& x, const Example& of, const std::string& side) {
  return at::matmul(x.to(at::kDouble), of.parameters.at(side + "_map.weight").to(at::kDouble)) +
         of.parameters.at(side + "_map.bias").to(at::kDouble).unsqueeze(1);
}

// Per head, summed over real rows and items: of the kernel's weights under softmax's, and of softmax's.
struct Expected {
  at::Tensor cross_entropy, entropy;
};
Expected defined_loss(const Example& of) {
  const at::Tensor q = mapped(of.input.q, of, "query"), k = mapped(of.input.k, of, "key");
  at::Tensor products =
      at::matmul(q.exp(), k.exp().transpose(2, 3)) + at::matmul((-q).exp(), (-k).exp().transpose(2, 3));
  at::Tensor target =
      (at::matmul(of.input.q.to(at::kDouble), of.input.k.to(at::kDouble).transpose(2, 3)) / std::sqrt(8.0))
          .exp();
  if (of.input.causal) {
    products = products.tril();
    target = target.tril();
  }
  if (of.input.mask.defined()) {
    const at::Tensor keys = of.input.mask.to(at::kDouble).view({3, 1, 1, 150});
    products = products * keys;
    target = target * keys;
  }
  target = target / target.sum(-1, true);
  if (of.input.mask.defined()) target = target * of.input.mask.to(at::kDouble).view({3, 1, 150, 1});
  const at::Tensor weights = products / products.sum(-1, true);
  const auto sum = [&](const at::Tensor& of_log) {
    return -(target * of_log.clamp_min(1e-300).log()).sum({0, 2, 3});
  };
  return {sum(weights), sum(target)};
}

class DistillationLossOf : public ::testing::TestWithParam<bool> {};

TEST_P(DistillationLossOf, PartsAreTheWholeWithAnyNumberOfThreads) {
  const Example expected = example(GetParam());
  const auto [loss, entropy] = defined_loss(expected);
  (loss.sum() / 450).backward();
  for (const int threads : {1, 2, 3}) {
    const ThreadCount count(threads);
    const Example own = example(GetParam());
    const auto found =
        training::distillation_loss(own.input, *make_kernel(parse_kernel_spec("softmax")),
                                    *make_kernel(parse_kernel_spec("hedgehog")), own.parameters, 450);
    EXPECT_LT((found.cross_entropy - loss).abs().max().item<double>() / loss.max().item<double>(), 1e-5);
    EXPECT_LT((found.entropy - entropy).abs().max().item<double>() / entropy.max().item<double>(), 1e-5);
    for (const auto& [name, parameter] : own.parameters) {
      const at::Tensor& gradient = expected.parameters.at(name).grad();
      EXPECT_LT((parameter.grad() - gradient).abs().max().item<double>(),
                1e-5 * gradient.abs().max().item<double>())
          << name << ", threads " << threads;
    }
    const auto again =
        training::distillation_loss(own.input, *make_kernel(parse_kernel_spec("softmax")),
                                    *make_kernel(parse_kernel_spec("hedgehog")), own.parameters, 0);
    EXPECT_TRUE(at::equal(again.cross_entropy, found.cross_entropy));
    // The gradients of a second batch are added to those of the first.
    training::distillation_loss(own.input, *make_kernel(parse_kernel_spec("softmax")),
                                *make_kernel(parse_kernel_spec("hedgehog")), own.parameters, 450);
    for (const auto& [name, parameter] : own.parameters) {
      const at::Tensor twice = 2 * expected.parameters.at(name).grad();
      EXPECT_LT((parameter.grad() - twice).abs().max().item<double>(),
                1e-5 * twice.abs().max().item<double>())
          << name << ", threads " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, DistillationLossOf, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "causal" : "padded"; });

} // namespace
} // namespace hydrascope
