// Every kernel of the registry against the double-precision reference.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"

namespace hydrascope {
namespace {

using testing_inputs::Case, testing_inputs::describe, testing_inputs::make_input,
    testing_inputs::moved_parameters, testing_inputs::normal, testing_inputs::relative_error;

const std::vector<Case>& cases() {
  constexpr TokenLayout grid14{1, 14, 14}, grid8{1, 8, 8}, distilled{2, 14, 14}, wide{3, 6, 10};
  static const std::vector<Case> all = {
      {1, 2, 1, 8},
      {1, 1, 1, 1, false, true},
      {2, 3, 2, 1},
      {1, 2, 2, 32, false, true},
      {1, 2, 63, 8, true},
      {1, 2, 63, 8, true, false, wide},
      {2, 2, 63, 32, false, true},
      {3, 2, 64, 32, true},
      {1, 2, 64, 1, false, true},
      {2, 1, 65, 64, false, false, grid8},
      {3, 2, 65, 8, true, true},
      {1, 2, 65, 80, true},
      {1, 1, 65, 128},
      {1, 3, 197, 64, false, false, grid14},
      {2, 2, 197, 8, true, true},
      {1, 1, 198, 32, true, false, distilled},
      {1, 1, 577, 64, true},
      {1, 1, 577, 8, false, true},
      {3, 1, 577, 8, true},
  };
  return all;
}

// Freed memory full of NaN, where the next outputs will lie.
void poison_memory(const at::Tensor& like) {
  for (int i = 0; i < 3; ++i) at::full(like.sizes(), std::numeric_limits<float>::quiet_NaN(), like.options());
}

class Parity : public testing::TestWithParam<reference::Row> {
protected:
  // "Unsupported" is a result of its own: a reason beforehand, and the same in the error of run().
  bool supported(const AttentionInput& input) const {
    const Support support = kernel->supports(shape_of(input));
    if (support.ok) return true;
    EXPECT_FALSE(support.reason.empty());
    EXPECT_THROW(kernel->run(input, {}), UsageError);
    EXPECT_THROW(kernel->weights(input, {}), UsageError);
    return false;
  }

  std::unique_ptr<Kernel> kernel = make_kernel(parse_kernel_spec(GetParam().spec));
};

TEST(ParityTable, HasARowForEveryKernelOfTheRegistry) {
  std::vector<std::string> names;
  for (const reference::Row& row : reference::rows()) names.push_back(parse_kernel_spec(row.spec).name);
  for (const KernelInfo& info : kernel_infos())
    EXPECT_THAT(names, testing::Contains(info.name)) << "add a row to tests/engine/attention/reference.cpp";
}

TEST_P(Parity, OutputAndWeightsAreTheReferences) {
  for (const Case& shape : cases()) {
    AttentionInput input = make_input(shape, 7);
    if (!supported(input)) continue;
    const KernelParameters parameters = moved_parameters(*kernel, shape, 70);
    const reference::Result expected = GetParam().compute(input, parameters, input.v);
    for (const bool gradients : {false, true}) {
      SCOPED_TRACE(describe(shape) + (gradients ? " with gradients" : ""));
      const at::AutoGradMode mode(gradients);
      input.q.requires_grad_(gradients);
      poison_memory(input.q);
      const AttentionOutput actual = kernel->run(input, parameters);
      EXPECT_EQ(actual.out.sizes(), input.q.sizes());
      EXPECT_EQ(actual.out.scalar_type(), at::kFloat);
      EXPECT_FALSE(actual.path.empty());
      EXPECT_LT(relative_error(actual.out, expected.out), 2e-5);
      EXPECT_EQ(kernel->weight_heads(shape_of(input)), expected.weights.size(1));
      EXPECT_LT(relative_error(kernel->weights(input, parameters), expected.weights), 2e-5);
      const at::Tensor some = at::tensor({shape.tokens - 1, std::int64_t{0}});
      EXPECT_LT(
          relative_error(kernel->weights(input, parameters, some), expected.weights.index_select(2, some)),
          2e-5);
    }
  }
}

TEST_P(Parity, LongSequences) {
  const Case shape{1, 1, 4097, 2, true, false, {1, 64, 64}};
  const AttentionInput input = make_input(shape, 8);
  const KernelParameters parameters = moved_parameters(*kernel, shape, 70);
  const reference::Result expected = GetParam().compute(input, parameters, input.v);
  poison_memory(input.q);
  EXPECT_LT(relative_error(kernel->run(input, parameters).out, expected.out), 2e-5);
  const at::Tensor some = at::tensor({std::int64_t{4000}, std::int64_t{1}});
  EXPECT_LT(relative_error(kernel->weights(input, parameters, some), expected.weights.index_select(2, some)),
            2e-5);
}

TEST_P(Parity, InputsOfAnySize) {
  // Three times what is measured over all kernels: 1.0e-6, 1.43e-4 (softmax:heads=1) and 1.14e-3 (performer).
  for (const auto& [scale, tolerance] : {std::pair{1e-4, 3e-6}, {30.0, 4.3e-4}, {100.0, 3.5e-3}})
    for (const Case& shape : {Case{1, 2, 197, 64, false, false, {1, 14, 14}}, Case{2, 2, 65, 32, true},
                              Case{1, 2, 64, 128}, Case{2, 1, 64, 1, true}}) {
      SCOPED_TRACE(describe(shape) + " times " + std::to_string(scale));
      const AttentionInput input = make_input(shape, 9, scale);
      const KernelParameters parameters = moved_parameters(*kernel, shape, 70);
      const reference::Result expected = GetParam().compute(input, parameters, input.v);
      const at::Tensor out = kernel->run(input, parameters).out, w = kernel->weights(input, parameters);
      EXPECT_TRUE(at::isfinite(out).all().item<bool>());
      EXPECT_TRUE(at::isfinite(w).all().item<bool>());
      EXPECT_LT(relative_error(out, expected.out), tolerance);
      EXPECT_LT(relative_error(w, expected.weights), tolerance);
    }
}

TEST_P(Parity, WeightsTimesValuesAreTheOutput) {
  for (const Case& shape : cases()) {
    SCOPED_TRACE(describe(shape));
    const AttentionInput input = make_input(shape, 17);
    if (!supported(input)) continue;
    const KernelParameters parameters = moved_parameters(*kernel, shape, 71);
    const double largest = kernel->run(input, parameters).out.abs().max().item<double>();
    EXPECT_LE(kernel->weights_check(input, parameters, at::tensor({shape.tokens - 1})),
              1e-5 * largest + 1e-7);
    EXPECT_LE(kernel->weights_check(input, parameters, {}), 1e-5 * largest + 1e-7);
  }
}

TEST_P(Parity, RowsOfNormalisedWeightsSumToOne) {
  if (!kernel->info().normalised) GTEST_SKIP() << "not normalised";
  const Case shape{2, 2, 65, 32, true};
  const AttentionInput input = make_input(shape, 5);
  const at::Tensor sums = kernel->weights(input, moved_parameters(*kernel, shape, 72)).sum(-1);
  const at::Tensor expected = input.mask.unsqueeze(1).expand(sums.sizes()).to(at::kFloat);
  EXPECT_LT((sums - expected).abs().max().item<double>(), 1e-5);
}

TEST_P(Parity, ContributionsAreTheReferencesAndSumToOutTimesGradient) {
  for (const Case& shape : cases()) {
    SCOPED_TRACE(describe(shape));
    const AttentionInput input = make_input(shape, 27);
    if (!supported(input)) continue;
    const KernelParameters parameters = moved_parameters(*kernel, shape, 73);
    const at::Tensor g = normal(input.q.sizes(), 74);
    const reference::Result expected = GetParam().compute(input, parameters, g);
    const at::Tensor out_times_g = kernel->run(input, parameters).out * g; // masked rows of out are 0
    for (const std::int64_t c : {std::int64_t{0}, shape.tokens - 1}) {
      const at::Tensor actual = kernel->contributions(input, parameters, c, g.select(2, c));
      const at::Tensor reference = expected.contributions.select(1, c);
      EXPECT_EQ(actual.sizes(), reference.sizes());
      EXPECT_LT((actual - reference).abs().max().item<double>(),
                1e-4 * (1 + reference.abs().max().item<double>()));
      const at::Tensor total = out_times_g.select(2, c).sum({1, 2});
      EXPECT_LT((actual.sum(1) - total).abs().max().item<double>(),
                1e-4 * (1 + total.abs().max().item<double>()));
    }
    const at::Tensor all = kernel->contributions(input, parameters, std::nullopt, g);
    const at::Tensor reference = expected.contributions.sum(1);
    EXPECT_LT((all - reference).abs().max().item<double>(),
              1e-4 * (1 + reference.abs().max().item<double>()));
    const at::Tensor total = out_times_g.sum({1, 2, 3});
    EXPECT_LT((all.sum(1) - total).abs().max().item<double>(), 1e-4 * (1 + total.abs().max().item<double>()));
  }
}

TEST_P(Parity, LargeInputsLeaveNoZeroRowInExponentialKernels) {
  if (!GetParam().exponential) GTEST_SKIP() << "not an exponential kernel";
  for (const Case& shape : {Case{1, 2, 197, 64}, Case{2, 2, 65, 32, true}, Case{1, 2, 197, 32, false, true},
                            Case{2, 1, 64, 1, true, true}}) {
    SCOPED_TRACE(describe(shape));
    const AttentionInput input = make_input(shape, 37, 100);
    const KernelParameters parameters = moved_parameters(*kernel, shape, 75);
    const reference::Result expected = GetParam().compute(input, parameters, input.v);
    const AttentionOutput actual = kernel->run(input, parameters);
    EXPECT_EQ(actual.zero_denominators.read(), 0);
    // A float32 exponent of 10⁴ is right to 10⁻³, and that is what a weight can be off by.
    EXPECT_LT(relative_error(actual.out, expected.out), 4e-3);
    const at::Tensor weights = kernel->weights(input, parameters);
    EXPECT_LT(relative_error(weights, expected.weights), 4e-3);
    at::Tensor sums = weights.sum(-1);
    if (input.mask.defined()) sums = sums.masked_fill(input.mask.logical_not().unsqueeze(1), 1);
    EXPECT_LT((sums - 1).abs().max().item<double>(), 1e-4);
  }
}

TEST_P(Parity, MaskedTokensLeakNothing) {
  for (const bool causal : {false, true}) {
    const Case shape{2, 2, 65, 8, true, causal};
    SCOPED_TRACE(describe(shape));
    AttentionInput clean = make_input(shape, 47), poisoned = clean;
    if (!supported(clean)) continue;
    const at::Tensor absent = clean.mask.logical_not().unsqueeze(1).unsqueeze(3);
    poisoned.q = clean.q.masked_fill(absent, std::numeric_limits<float>::quiet_NaN());
    poisoned.k = clean.k.masked_fill(absent, std::numeric_limits<float>::infinity());
    poisoned.v = clean.v.masked_fill(absent, std::numeric_limits<float>::quiet_NaN());
    poisoned.layer_input = clean.layer_input.masked_fill(clean.mask.logical_not().unsqueeze(2),
                                                         std::numeric_limits<float>::quiet_NaN());
    const KernelParameters parameters = moved_parameters(*kernel, shape, 76);
    const at::Tensor g = normal(clean.q.sizes(), 77), poisoned_g = g.masked_fill(absent, NAN);
    EXPECT_TRUE(at::equal(kernel->run(poisoned, parameters).out, kernel->run(clean, parameters).out));
    EXPECT_TRUE(at::equal(kernel->weights(poisoned, parameters), kernel->weights(clean, parameters)));
    EXPECT_TRUE(at::equal(kernel->contributions(poisoned, parameters, std::nullopt, poisoned_g),
                          kernel->contributions(clean, parameters, std::nullopt, g)));
    const at::Tensor out = kernel->run(clean, parameters).out;
    EXPECT_EQ(out.masked_select(absent).abs().max().item<double>(), 0);
    EXPECT_GT(out.abs().max().item<double>(), 0);

    for (at::Tensor* x : {&poisoned.q, &poisoned.k, &poisoned.v}) x->requires_grad_();
    kernel->run(poisoned, parameters).out.sum().backward();
    for (const at::Tensor* x : {&poisoned.q, &poisoned.k, &poisoned.v}) {
      if (!x->grad().defined() && !kernel->info().uses_query_projection) continue; // q is not looked at
      EXPECT_TRUE(at::isfinite(x->grad()).all().item<bool>());
    }
  }
}

TEST_P(Parity, PaddingChangesNothing) {
  const Case shape{1, 2, 40, 8};
  const AttentionInput plain = make_input(shape, 57);
  const KernelParameters parameters = moved_parameters(*kernel, shape, 78);
  AttentionInput padded = plain;
  const AttentionInput filler = make_input({1, 2, 9, 8}, 58);
  padded.q = at::cat({plain.q, filler.q}, 2);
  padded.k = at::cat({plain.k, filler.k}, 2);
  padded.v = at::cat({plain.v, filler.v}, 2);
  padded.layer_input = at::cat({plain.layer_input, filler.layer_input}, 1);
  padded.mask = (at::arange(49) < 40).unsqueeze(0);
  const at::Tensor out = kernel->run(padded, parameters).out.slice(2, 0, 40);
  EXPECT_LT(relative_error(out, kernel->run(plain, parameters).out), 1e-5);
}

TEST_P(Parity, HalfTypesAndDouble) {
  for (const Case& shape : {Case{1, 2, 197, 32}, Case{2, 2, 65, 8, true, true}}) {
    SCOPED_TRACE(describe(shape));
    const KernelParameters parameters = moved_parameters(*kernel, shape, 79);
    for (const auto& [type, tolerance] :
         {std::pair{at::kBFloat16, 1.5e-2}, std::pair{at::kHalf, 2e-3}, std::pair{at::kDouble, 1e-12}}) {
      AttentionInput input = make_input(shape, 67);
      if (!supported(input)) continue;
      for (at::Tensor* x : {&input.q, &input.k, &input.v, &input.layer_input}) *x = x->to(type);
      const reference::Result expected = GetParam().compute(input, parameters, input.v);
      const at::Tensor out = kernel->run(input, parameters).out;
      const bool half = type == at::kBFloat16 || type == at::kHalf;
      EXPECT_EQ(out.scalar_type(), half && parameters.contains("norm.weight") ? at::kFloat : type);
      EXPECT_LT(relative_error(out, expected.out), tolerance) << toString(type);
      EXPECT_LT(relative_error(kernel->weights(input, parameters), expected.weights),
                type == at::kDouble ? 1e-12 : 2e-5);
    }
  }
}

TEST_P(Parity, StridedInputsFromOneProjection) {
  const std::int64_t tokens = 50, heads = 3, width = 8;
  const at::Tensor projected = normal({2, tokens, 3 * heads * width}, 87).unflatten(2, {3, heads, width});
  AttentionInput strided, dense;
  at::Tensor* const targets[] = {&strided.q, &strided.k, &strided.v};
  for (std::int64_t i = 0; i < 3; ++i) *targets[i] = projected.select(2, i).transpose(1, 2);
  strided.layer_input = projected.select(2, 1).flatten(2).slice(2, 0, heads * width);
  dense.layer_input = strided.layer_input.contiguous();
  dense.q = strided.q.contiguous();
  dense.k = strided.k.contiguous();
  dense.v = strided.v.contiguous();
  const KernelParameters parameters = moved_parameters(*kernel, {2, heads, tokens, width}, 88);
  EXPECT_LT(relative_error(kernel->run(strided, parameters).out, kernel->run(dense, parameters).out), 1e-6);
}

TEST_P(Parity, GradientsAreThoseOfFiniteDifferences) {
  for (const bool causal : {false, true}) {
    const Case shape{2, 2, 7, 3, true, causal};
    SCOPED_TRACE(describe(shape));
    AttentionInput input = make_input(shape, 97);
    if (!supported(input)) continue;
    input.mask.select(0, 1).fill_(true);
    input.layer_input = input.layer_input.to(at::kDouble);
    KernelParameters parameters = moved_parameters(*kernel, shape, 98);
    std::map<std::string, at::Tensor*> leaves{{"q", &input.q}, {"k", &input.k}, {"v", &input.v}};
    for (auto& [name, value] : parameters) leaves[name] = &value;
    for (const auto& [name, leaf] : leaves) *leaf = leaf->to(at::kDouble).clone().requires_grad_();
    const at::Tensor direction = normal({2, 2, 7, 3}, 99).to(at::kDouble);
    const auto loss = [&] {
      const at::Tensor out = kernel->finish(kernel->run(input, parameters).out, input.mask, parameters);
      return (out * direction).sum() + kernel->weights(input, parameters).square().sum();
    };
    loss().backward();
    for (const auto& [name, leaf] : leaves) {
      const at::Tensor values = leaf->detach().flatten(); // shares the leaf's memory
      for (const std::int64_t i : {std::int64_t{0}, values.numel() / 2, values.numel() - 1}) {
        const at::NoGradGuard guard;
        constexpr double step = 1e-6;
        const double start = values[i].item<double>();
        values[i] = start + step;
        const double above = loss().item<double>();
        values[i] = start - step;
        const double below = loss().item<double>();
        values[i] = start;
        const at::Tensor gradient = leaf->grad();
        const double analytic = gradient.defined() ? gradient.flatten()[i].item<double>() : 0;
        EXPECT_NEAR(analytic, (above - below) / (2 * step), 1e-5 * (1 + std::abs(analytic)))
            << name << "[" << i << "]";
      }
    }
  }
}

// The bundled sources of `phi` beside the kernels that they restate: outputs and gradients.
TEST(TypedMaps, AgreeWithTheRegistry) {
  const std::map<std::string, std::string> names{{"query.W", "query_map.weight"},
                                                 {"query.b", "query_map.bias"},
                                                 {"key.W", "key_map.weight"},
                                                 {"key.b", "key_map.bias"},
                                                 {"omega", "omega"}};
  double worst = 0;
  int comparisons = 0;
  for (const std::string& name : bundled_maps()) {
    const auto typed = make_kernel(parse_kernel_spec("phi:" + name));
    for (const Case& shape : cases()) {
      SCOPED_TRACE(name + " " + describe(shape));
      AttentionInput input = make_input(shape, 107);
      const KernelParameters parameters = moved_parameters(*typed, shape, 108);
      KernelSpec spec{name, {}};
      KernelParameters own;
      for (const auto& [key, value] : parameters) {
        own[names.at(key)] = name == "t2r" && key.ends_with("W")
                                 ? value * std::sqrt(2 / static_cast<double>(shape.width))
                                 : value;
        if (key == "omega") spec.parameters["features"] = std::to_string(value.size(0));
      }
      const auto registered = make_kernel(spec);
      const at::Tensor direction = normal(input.q.sizes(), 109);
      const auto results = [&](const Kernel& kernel, const KernelParameters& of_kernel) {
        for (at::Tensor* x : {&input.q, &input.k, &input.v}) *x = x->detach().clone().requires_grad_();
        const at::Tensor out = kernel.run(input, of_kernel).out;
        (out * direction).sum().backward();
        return std::vector<at::Tensor>{out.detach(), input.q.grad(), input.k.grad(), input.v.grad()};
      };
      const auto actual = results(*typed, parameters), expected = results(*registered, own);
      double scale = 1e-12; // of all together: gradients of q may cancel to 0
      for (const at::Tensor& tensor : expected) scale = std::max(scale, tensor.abs().max().item<double>());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        const double difference = (actual[i] - expected[i]).abs().max().item<double>() / scale;
        EXPECT_LT(difference, 1e-5) << "tensor " << i;
        worst = std::max(worst, difference);
        ++comparisons;
      }
    }
  }
  std::printf("%d tensors of typed maps, the largest difference %.1e\n", comparisons, worst);
}

INSTANTIATE_TEST_SUITE_P(Registry, Parity, testing::ValuesIn(reference::rows()), [](const auto& instance) {
  std::string name = instance.param.spec;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(NormalisedLinear, AZeroDenominatorGivesACountedZeroRow) {
  AttentionInput input = make_input({1, 2, 6, 4}, 3);
  input.q = input.q.abs();
  input.k = input.k.abs();
  input.q.select(2, 2).neg_(); // ReLU leaves nothing of this query
  const auto kernel = make_kernel({"relu", {}});
  const AttentionOutput output = kernel->run(input, {});
  EXPECT_EQ(output.zero_denominators.read(), 2); // one in each head
  EXPECT_EQ(output.out.select(2, 2).abs().max().item<double>(), 0);
  EXPECT_TRUE(at::isfinite(output.out).all().item<bool>());
  EXPECT_EQ(kernel->weights(input, {}).select(2, 2).abs().max().item<double>(), 0);
}

TEST(Hydra, ARowOfZerosGivesZeros) {
  AttentionInput input = make_input({1, 2, 6, 4}, 3);
  input.q.select(2, 1).zero_();
  input.k.zero_();
  const at::Tensor out = make_kernel({"hydra-cosine", {}})->run(input, {}).out;
  EXPECT_EQ(out.abs().max().item<double>(), 0);
}

TEST(Softmax, LongSequencesAreTakenInTiles) {
  const Case shape{1, 4, 1500, 8, true, true}; // four tiles of rows
  const AttentionInput input = make_input(shape, 3);
  const at::Tensor composed = make_kernel({"softmax", {}})->run(input, {}).out;
  for (const char* fused : {"sdpa", "flash"})
    EXPECT_LT(relative_error(composed, make_kernel({fused, {}})->run(input, {}).out), 1e-5) << fused;
}

TEST(CausalForm, AWideRangeBetweenEarlyAndLateKeysIsExact) {
  // The last keys' features exceed the first ones' by e¹⁰⁰⁰: one scale for all would leave nothing of the
  // first.
  AttentionInput input = make_input({1, 1, 70, 4, false, true}, 3);
  input.k = input.k + at::arange(70).unsqueeze(1) * 16.0;
  for (const char* name : {"exp-t1", "hedgehog-untrained"}) {
    const auto kernel = make_kernel({name, {}});
    const AttentionOutput actual = kernel->run(input, {});
    EXPECT_EQ(actual.zero_denominators.read(), 0);
    const reference::Result expected = reference::row(name).compute(input, {}, input.v);
    EXPECT_LT(relative_error(actual.out, expected.out), 1e-3) << name;
    EXPECT_LT(relative_error(kernel->weights(input, {}), expected.weights), 1e-3) << name;
  }
}

// Where keys differ so much, φ_K of a softmax over tokens depends on the query.
TEST(CausalForm, HydrasWeightsOfSomeRowsAreThoseOfAll) {
  AttentionInput input = make_input({1, 2, 70, 4, false, true}, 3);
  input.k = input.k + at::arange(70).unsqueeze(1) * 16.0;
  const at::Tensor some = at::tensor({std::int64_t{69}, std::int64_t{0}, std::int64_t{33}});
  for (const char* name : {"hydra-tanh-softmax", "hydra-sigmoid-softmax"}) {
    const auto kernel = make_kernel({name, {}});
    const at::Tensor expected = reference::row(name).compute(input, {}, input.v).weights;
    EXPECT_LT(relative_error(kernel->weights(input, {}), expected), 1e-3) << name;
    EXPECT_LT(relative_error(kernel->weights(input, {}, some), expected.index_select(2, some)), 1e-3) << name;
  }
}

} // namespace
} // namespace hydrascope
