// What the definitions say of each other, beyond agreement with the reference.
#include <cmath>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"

namespace hydrascope {
namespace {

using testing_inputs::Case, testing_inputs::make_input, testing_inputs::moved_parameters,
    testing_inputs::relative_error;

at::Tensor output_of(const std::string& spec, const AttentionInput& input,
                     const KernelParameters& parameters = {}) {
  return make_kernel(parse_kernel_spec(spec))->run(input, parameters).out;
}
at::Tensor weights_of(const std::string& spec, const AttentionInput& input) {
  return make_kernel(parse_kernel_spec(spec))->weights(input, {});
}

TEST(Properties, PermutingKeysAndValuesTogetherChangesNothing) {
  const Case shape{1, 2, 65, 16};
  const AttentionInput input = make_input(shape, 3);
  const at::Tensor order =
      at::randperm(65, at::detail::createCPUGenerator(4), at::TensorOptions().dtype(at::kLong));
  AttentionInput permuted = input;
  permuted.k = input.k.index_select(2, order);
  permuted.v = input.v.index_select(2, order);
  for (const KernelInfo& info : kernel_infos()) {
    const auto kernel = make_kernel({info.name, {}});
    const KernelParameters parameters = moved_parameters(*kernel, shape, 5);
    const double error =
        relative_error(kernel->run(permuted, parameters).out, kernel->run(input, parameters).out);
    if (info.positional)
      EXPECT_GT(error, 1e-3) << info.name << " looks at where a token stands";
    else
      EXPECT_LT(error, 1e-5) << info.name;
  }
}

// Feature by feature the products sum to what weights() gives, or to its rows before they are normalised.
TEST(Properties, FeaturesMultiplyToTheWeights) {
  const Case shape{2, 3, 33, 16, true};
  const at::Tensor rows = at::tensor({4, 9, 20}, at::TensorOptions().dtype(at::kLong));
  for (const double scale : {1.0, 100.0}) {
    const AttentionInput input = make_input(shape, 8, scale);
    int with_features = 0;
    for (const KernelInfo& info : kernel_infos()) {
      const auto kernel = make_kernel({info.name, {}});
      const KernelParameters parameters = moved_parameters(*kernel, shape, 9);
      const auto features = features_of(*kernel, input, parameters, rows, {});
      const bool has_window = info.parameter("w") != nullptr;
      if (info.family == KernelFamily::exact || has_window) {
        EXPECT_FALSE(features.has_value()) << info.name;
        continue;
      }
      ASSERT_TRUE(features.has_value()) << info.name;
      ++with_features;
      at::Tensor query = features->query, key = features->key;
      if (info.implied_weights) {
        query = query.squeeze(1).unflatten(2, {3, 16}).transpose(1, 2);
        key = key.squeeze(1).unflatten(2, {3, 16}).transpose(1, 2);
      }
      at::Tensor products = at::matmul(query, key.transpose(2, 3));
      if (info.normalised) {
        const at::Tensor sums = products.sum(-1, true);
        products = products / sums.masked_fill(sums == 0, 1);
      }
      EXPECT_LT(relative_error(products, kernel->weights(input, parameters, rows)), 1e-4)
          << info.name << " at " << scale;
    }
    EXPECT_GT(with_features, 15);
  }
}

TEST(Properties, FeaturesOfSomeKeysAreThoseOfAll) {
  const Case shape{1, 2, 40, 8, true};
  const AttentionInput input = make_input(shape, 10);
  const at::Tensor keys = at::tensor({3, 17}, at::TensorOptions().dtype(at::kLong));
  for (const KernelInfo& info : kernel_infos()) {
    const auto kernel = make_kernel({info.name, {}});
    const KernelParameters parameters = moved_parameters(*kernel, shape, 11);
    const auto all = features_of(*kernel, input, parameters, {}, {});
    if (!all) continue;
    const auto some = features_of(*kernel, input, parameters, keys, keys);
    EXPECT_LT(relative_error(some->key, all->key.index_select(2, keys)), 1e-5) << info.name;
    EXPECT_LT(relative_error(some->query, all->query.index_select(2, keys)), 1e-5) << info.name;
  }
}

TEST(Properties, LinearCosineWithOneHeadAFeatureIsHydra) {
  const AttentionInput input = make_input({2, 3, 65, 16, true}, 6);
  EXPECT_LT(
      relative_error(output_of("linear-cosine:heads=48,norm=row", input), output_of("hydra-cosine", input)),
      1e-5);
  // With a norm per head of one feature φ is its sign.
  const auto signs = [&](const at::Tensor& x) {
    return at::sign(x).masked_fill(input.mask.logical_not().unsqueeze(1).unsqueeze(3), 0);
  };
  const at::Tensor v = input.v.masked_fill(input.mask.logical_not().unsqueeze(1).unsqueeze(3), 0);
  EXPECT_LT(relative_error(output_of("linear-cosine:heads=48", input),
                           signs(input.q) * (signs(input.k) * v).sum(2, true)),
            1e-5);
}

TEST(Properties, AWindowAsLargeAsTheGridIsSoftmax) {
  const AttentionInput image = make_input({1, 2, 64, 16, false, false, {4, 6, 10}}, 7);
  const AttentionInput text = make_input({2, 2, 63, 16, true}, 8);
  for (const AttentionInput* input : {&image, &text})
    for (const char* spec : {"local-window:w=63", "local-window:w=63,mode=blocks"})
      EXPECT_LT(relative_error(output_of(spec, *input), output_of("softmax", *input)), 1e-6) << spec;
  EXPECT_GT(relative_error(output_of("local-window:w=9", image), output_of("softmax", image)), 1e-3);
}

TEST(Properties, PolyNlIsHydraMeanOfTheLayersInput) {
  AttentionInput input = make_input({2, 3, 65, 8, true}, 9), replaced = input;
  replaced.q = input.layer_input.unflatten(2, {3, 8}).transpose(1, 2);
  EXPECT_LT(relative_error(output_of("poly-nl", input), output_of("hydra-mean", replaced)), 1e-6);
  input.layer_input = at::Tensor();
  const auto kernel = make_kernel({"poly-nl", {}});
  EXPECT_FALSE(kernel->supports(shape_of(input)).ok);
  EXPECT_THROW(kernel->run(input, {}), UsageError);
}

TEST(Properties, TaylorOfTinyScoresIsSoftmax) {
  for (const double scale : {0.3, 0.1}) {
    const AttentionInput input = make_input({1, 2, 65, 16}, 10, scale);
    const double error = relative_error(weights_of("taylor", input), weights_of("softmax", input));
    const double largest = (at::matmul(input.q, input.k.transpose(2, 3)) / 4).abs().max().item<double>();
    EXPECT_LT(error, largest * largest * largest / 3 + 1e-5) << "the remainder of the polynomial is s³/6";
  }
}

// E(φ(q)·φ(k)) = exp(q·k/√d): the error of the kernel falls as 1/√m.
TEST(Properties, PerformerConvergesAtTheMonteCarloRate) {
  const AttentionInput input = make_input({1, 1, 48, 16}, 11, 0.5);
  const at::Tensor exact = weights_of("softmax", input);
  const auto error = [&](int features) {
    double sum = 0;
    for (int seed = 0; seed < 12; ++seed) {
      const std::string spec =
          "performer:features=" + std::to_string(features) + ",seed=" + std::to_string(seed);
      sum += (weights_of(spec, input) - exact).square().mean().item<double>();
    }
    return std::sqrt(sum / 12);
  };
  const double few = error(256), many = error(4096); // 16 times the features: a quarter of the error
  EXPECT_LT(many, few / 4 * 1.4);
  EXPECT_GT(many, few / 4 / 1.4);
}

TEST(Properties, PerformersRowsAreOrthogonalAndFixedByTheSeed) {
  const auto omega = [](const char* spec, int layer) {
    return make_kernel(parse_kernel_spec(spec))->initial_parameters({2, 16}, layer).at("omega");
  };
  const at::Tensor first = omega("performer:features=40,seed=7", 0);
  EXPECT_EQ(first.sizes(), at::IntArrayRef({40, 16}));
  EXPECT_TRUE(first.equal(omega("performer:features=40,seed=7", 0)));
  EXPECT_FALSE(first.equal(omega("performer:features=40,seed=8", 0)));
  EXPECT_FALSE(first.equal(omega("performer:features=40,seed=7", 1)));
  for (const std::int64_t block : {0, 16}) {
    const at::Tensor rows = first.slice(0, block, block + 16);
    const at::Tensor products = at::matmul(rows, rows.t());
    const at::Tensor lengths = products.diagonal().sqrt();
    const at::Tensor cosines = products / (lengths.unsqueeze(0) * lengths.unsqueeze(1));
    EXPECT_LT((cosines - cosines.diagonal().diag()).abs().max().item<double>(), 1e-5);
    EXPECT_GT(lengths.std().item<double>(), 0.1) << "lengths are drawn, not all √d";
  }
}

TEST(Properties, AMapThatT2RIsNotGivenIsItsStart) {
  const Case shape{1, 2, 20, 8};
  const AttentionInput input = make_input(shape, 19);
  const auto kernel = make_kernel({"t2r", {}});
  const KernelParameters start = kernel->initial_parameters({2, 8}),
                         moved = moved_parameters(*kernel, shape, 20);
  for (const auto& [name, given] : moved) {
    KernelParameters all = start;
    all[name] = given;
    EXPECT_LT(relative_error(output_of("t2r", input, {{name, given}}), output_of("t2r", input, all)), 1e-6)
        << name;
    EXPECT_LT(relative_error(kernel->weights(input, {{name, given}}), kernel->weights(input, all)), 1e-6)
        << name;
  }
  EXPECT_LT(relative_error(output_of("t2r", input), output_of("t2r", input, start)), 1e-6);
}

// AFT-Simple (Zhai et al. 2021, Eq. 3): Y = σ(Q) ⊙ Σ_t exp(K_t) ⊙ V_t / Σ_t exp(K_t).
TEST(Properties, SigmoidSoftmaxIsAftSimple) {
  const AttentionInput input = make_input({2, 3, 40, 8}, 12);
  const at::Tensor gates = at::exp(input.k);
  const at::Tensor expected = at::sigmoid(input.q) * (gates * input.v).sum(2, true) / gates.sum(2, true);
  EXPECT_LT(relative_error(output_of("aft-simple", input), expected), 1e-5);
}

TEST(Properties, TheLayerNormOfHydrasVariantsIsTheReferences) {
  const Case shape{2, 3, 65, 8, true};
  const AttentionInput input = make_input(shape, 13);
  for (const char* spec : {"hydra-cosine-ln", "hydra-tanh-l2-ln"}) {
    const auto kernel = make_kernel({spec, {}});
    const KernelParameters parameters = moved_parameters(*kernel, shape, 14);
    const at::Tensor out = kernel->run(input, parameters).out;
    const at::Tensor finished = kernel->finish(out, input.mask, parameters);
    EXPECT_LT(relative_error(finished, reference::layer_norm(input, out, parameters)), 2e-5);
    EXPECT_EQ(
        finished.masked_select(input.mask.logical_not().unsqueeze(1).unsqueeze(3)).abs().max().item<double>(),
        0);
    EXPECT_THROW(kernel->finish(out, input.mask, {{"norm.weight", at::tensor({1.0F})}}), UsageError);
  }
}

TEST(Properties, TheGateTimesTheGlobalVectorIsHydrasOutput) {
  const Case shape{2, 3, 65, 8, true};
  const AttentionInput input = make_input(shape, 15);
  for (const KernelInfo& info : kernel_infos()) {
    const auto kernel = make_kernel({info.name, {}});
    const auto parts = kernel->global_vector(input, {}, at::tensor({std::int64_t{40}, std::int64_t{3}}));
    EXPECT_EQ(parts.has_value(), info.implied_weights) << info.name;
    if (!parts) continue;
    const at::Tensor out = kernel->run(input, {}).out.transpose(1, 2).flatten(2); // (B,N,D)
    const at::Tensor product = parts->gate * parts->vector.unsqueeze(1);
    EXPECT_LT(relative_error(product.select(1, 0), out.select(1, 40)), 1e-5) << info.name;
    EXPECT_LT(relative_error(product.select(1, 1), out.select(1, 3)), 1e-5) << info.name;
  }
}

TEST(Properties, ManyTokensAreTakenInBlocks) {
  const Case shape{1, 1, 20000, 64}; // several blocks for every linear kernel
  const AttentionInput input = make_input(shape, 16);
  for (const char* spec : {"hydra-cosine", "hydra-mean", "hydra-tanh-softmax", "elu", "cosformer", "hedgehog",
                           "linear-cosine"}) {
    const auto kernel = make_kernel({spec, {}});
    const KernelParameters parameters = moved_parameters(*kernel, shape, 17);
    const at::Tensor out = kernel->run(input, parameters).out;
    AttentionInput exact = input;
    exact.q = input.q.to(at::kDouble).requires_grad_(); // a graph: all tokens at once
    exact.k = input.k.to(at::kDouble);
    exact.v = input.v.to(at::kDouble);
    EXPECT_LT(relative_error(out, kernel->run(exact, parameters).out.detach()), 2e-5) << spec;
    const at::Tensor g = input.v;
    const double total = (out * g).sum(at::kDouble).item<double>();
    EXPECT_NEAR(kernel->contributions(input, parameters, std::nullopt, g).sum(at::kDouble).item<double>(),
                total, 1e-4 * (1 + std::abs(total)))
        << spec;
  }
}

// LibTorch keeps a configuration of AMX's tiles from call to call, and does not configure them for the same
// shape again.
TEST(Properties, OwnTilesLeaveLibTorchItsOwn) {
  AttentionInput input = make_input({1, 4, 128, 64}, 19);
  for (at::Tensor* const x : {&input.q, &input.k, &input.v}) *x = x->to(at::kBFloat16);
  const at::Tensor before = output_of("sdpa", input);
  EXPECT_LT(relative_error(output_of("flash", input), before), 0.03);
  EXPECT_TRUE(output_of("sdpa", input).equal(before));
}

TEST(Properties, ParametersOutOfRangeAreRefused) {
  for (const char* spec : {"performer:features=0", "performer:seed=-1", "local-window:w=0",
                           "local-window:mode=other", "linear-cosine:norm=column", "linear-cosine:heads=0",
                           "cosformer:m=0", "t2r:shared=2", "hedgehog-softmax:form=three", "hedgehog:bias=2"})
    EXPECT_THROW(make_kernel(parse_kernel_spec(spec)), UsageError) << spec;
  const AttentionInput input = make_input({1, 2, 9, 8}, 18);
  for (const char* spec : {"linear-cosine:heads=5", "softmax:heads=5", "cosformer:m=8"}) {
    const auto kernel = make_kernel(parse_kernel_spec(spec));
    EXPECT_FALSE(kernel->supports(shape_of(input)).ok) << spec;
    EXPECT_THROW(kernel->run(input, {}), UsageError) << spec;
  }
  // With a mask m is compared with the real tokens, which may be all.
  AttentionInput real = input;
  real.mask = at::ones({1, 9}, at::kBool);
  EXPECT_THROW(output_of("cosformer:m=8", real), UsageError);
  EXPECT_THROW(weights_of("cosformer:m=8", real), UsageError);
  real.mask.select(1, 8).fill_(false);
  EXPECT_EQ(output_of("cosformer:m=8", real).sizes(), input.q.sizes());
  EXPECT_THROW(output_of("performer", input, {{"omega", at::tensor({1.0F})}}), UsageError);
  AttentionInput masked = input;
  masked.mask = at::tensor({1, 1, 1}).to(at::kBool).unsqueeze(0);
  for (const KernelInfo& info : kernel_infos())
    EXPECT_THROW(make_kernel({info.name, {}})->run(masked, {}), UsageError) << info.name;
}

} // namespace
} // namespace hydrascope
