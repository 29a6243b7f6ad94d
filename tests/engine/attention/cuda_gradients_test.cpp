// How fused attention is trained through, with a plug-in made of what runs on the CPU in the place of the
// GPU's: the gradients reach q, k, v and what stands before φ. (What the plug-in's blocks compute:
// cuda_hydra_test.cpp, cuda_linear_gradient_test.cpp.)
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/linear_cpu.h"
#include "engine/training/loop/autocast.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

using testing_inputs::normal, testing_inputs::relative_error;

at::Tensor unit(const at::Tensor& x) {
  return x / at::linalg_vector_norm(x, 2, at::IntArrayRef({-1}), true).clamp_min(1e-12);
}

at::Tensor hydra(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                 const bool causal) {
  const auto rows = [&](const at::Tensor& x) { return select_rows(to_rows(x), mask); };
  const at::Tensor gated = select_rows(unit(rows(k)) * rows(v), mask);
  const at::Tensor global = causal ? at::cumsum(gated, 1) : gated.sum(1, true);
  return to_heads(select_rows(unit(rows(q)) * global, mask), q.size(1));
}

// Hedgehog's map of y.
at::Tensor linear(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  const auto features = [](const at::Tensor& y) { return at::cat({y.exp(), (-y).exp()}, -1); };
  at::Tensor products = at::matmul(features(q), features(k).transpose(2, 3));
  if (mask.defined()) products = products * mask.unsqueeze(1).unsqueeze(1);
  return select_tokens(at::matmul(products / products.sum(-1, true), v), mask);
}

// LibTorch's own gradients of output(q, k, v).
template <typename Output>
InputGradients gradients_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& grad_out, const Output& output) {
  const at::AutoGradMode with_graph(true);
  InputGradients leaves{q.detach().requires_grad_(), k.detach().requires_grad_(),
                        v.detach().requires_grad_()};
  (output(leaves.q, leaves.k, leaves.v) * grad_out).sum().backward();
  return {leaves.q.grad(), leaves.k.grad(), leaves.v.grad()};
}

// As the GPU's: no graph comes out of it, and no projection goes in.
HydrascopeCudaPlugin plugin_on_cpu() {
  HydrascopeCudaPlugin plugin{};
  plugin.hydra_cosine = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& mask, const bool causal) {
    return hydra(q.detach(), k.detach(), v.detach(), mask, causal);
  };
  plugin.hydra_cosine_gradients = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& mask, const bool causal, const at::Tensor& grad_out) {
    return gradients_of(q, k, v, grad_out, [&](const auto& a, const auto& b, const auto& c) {
      return hydra(a, b, c, mask, causal);
    });
  };
  plugin.linear = [](const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                     const LoopProjection& query, const LoopProjection& key, bool normalised) {
    EXPECT_FALSE(query.weight.defined() || query.bias.defined() || key.weight.defined() ||
                 key.bias.defined());
    return linear_on_cpu(input, mask, map, query, key, normalised);
  };
  plugin.linear_gradients = [](const AttentionInput& input, const at::Tensor& mask, cpu::PointMap,
                               const LoopProjection&, const LoopProjection&, bool,
                               const at::Tensor& grad_out) {
    return gradients_of(input.q, input.k, input.v, grad_out,
                        [&](const auto& a, const auto& b, const auto& c) { return linear(a, b, c, mask); });
  };
  return plugin;
}

AttentionInput trained_input(const bool masked) {
  AttentionInput input = testing_inputs::make_input({2, 3, 20, 8, masked}, 3);
  if (masked)
    input.mask.select(0, 1).select(0, 4).fill_(true); // a sequence without a real token has no row to compare
  for (at::Tensor* x : {&input.q, &input.k, &input.v}) x->requires_grad_();
  return input;
}

TEST(CudaGradients, ReachHydrasInputs) {
  const HydrascopeCudaPlugin plugin = plugin_on_cpu();
  for (const auto& [masked, causal] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    AttentionInput input = trained_input(masked);
    input.causal = causal;
    const at::Tensor g = normal(input.v.sizes(), 9), mask = real_mask(input);
    const at::Tensor out = hydra_cosine_with_gradients(plugin, input, mask);
    EXPECT_LT(relative_error(out, hydra(input.q, input.k, input.v, mask, input.causal)), 1e-6);
    (out * g).sum().backward();
    const InputGradients expected = gradients_of(
        input.q, input.k, input.v, g,
        [&](const auto& a, const auto& b, const auto& c) { return hydra(a, b, c, mask, input.causal); });
    EXPECT_LT(relative_error(input.q.grad(), expected.q), 1e-5);
    EXPECT_LT(relative_error(input.k.grad(), expected.k), 1e-5);
    EXPECT_LT(relative_error(input.v.grad(), expected.v), 1e-5);
  }
}

TEST(CudaGradients, ReachLinearAttentionsInputsAndProjections) {
  const HydrascopeCudaPlugin plugin = plugin_on_cpu();
  for (const bool masked : {false, true}) {
    const AttentionInput input = trained_input(masked);
    const at::Tensor g = normal(input.v.sizes(), 9), mask = real_mask(input);
    const at::Tensor weight = (normal({3, 8, 8}, 5) / 4).requires_grad_(),
                     bias = normal({3, 8}, 6).requires_grad_();
    LoopProjection query, key;
    query.weight = key.weight = weight;
    query.bias = bias;
    query.scale = 0.5;
    key.half_square = 0.05;
    AttentionOutput output =
        linear_with_gradients(plugin, input, mask, cpu::PointMap::plus_minus_exponential, query, key, true);
    (output.out * g).sum().backward();

    const at::Tensor own_weight = weight.detach().requires_grad_(), own_bias = bias.detach().requires_grad_();
    const InputGradients expected =
        gradients_of(input.q, input.k, input.v, g, [&](const auto& a, const auto& b, const auto& c) {
          const at::Tensor y = (at::matmul(a, own_weight) + own_bias.unsqueeze(1)) * 0.5;
          const at::Tensor z = at::matmul(b, own_weight) - 0.05 * b.square().sum(-1, true);
          const at::Tensor out = linear(y, z, c, mask);
          EXPECT_LT(relative_error(output.out, out), 1e-5);
          return out;
        });
    EXPECT_LT(relative_error(input.q.grad(), expected.q), 1e-4);
    EXPECT_LT(relative_error(input.k.grad(), expected.k), 1e-4);
    EXPECT_LT(relative_error(input.v.grad(), expected.v), 1e-4);
    EXPECT_LT(relative_error(weight.grad(), own_weight.grad()), 1e-4);
    EXPECT_LT(relative_error(bias.grad(), own_bias.grad()), 1e-4);
  }
}

TEST(CudaGradients, AskForTheCausalForm) {
  HydrascopeCudaPlugin plugin{};
  plugin.linear = [](const AttentionInput& input, const at::Tensor&, cpu::PointMap, const LoopProjection&,
                     const LoopProjection&, bool) {
    EXPECT_TRUE(input.causal);
    return AttentionOutput{.out = input.v.detach().clone()};
  };
  plugin.linear_gradients = [](const AttentionInput& input, const at::Tensor&, cpu::PointMap,
                               const LoopProjection&, const LoopProjection&, bool, const at::Tensor& g) {
    EXPECT_TRUE(input.causal);
    return InputGradients{g * 2, g * 3, g * 4};
  };
  AttentionInput input = trained_input(false);
  input.causal = true;
  linear_with_gradients(plugin, input, {}, cpu::PointMap::one_plus_elu, {}, {}, true).out.sum().backward();
  EXPECT_EQ(input.q.grad().min().item<double>(), 2);
  EXPECT_EQ(input.k.grad().min().item<double>(), 3);
  EXPECT_EQ(input.v.grad().min().item<double>(), 4);
}

// Rounded to bfloat16, a y of 10 would be off by up to 0.02, and e^y by 2 %.
TEST(CudaGradients, ComputeWhatStandsBeforeAnExponentialInFloat32) {
  HydrascopeCudaPlugin plugin{};
  plugin.linear = [](const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                     const LoopProjection& query, const LoopProjection& key, bool normalised) {
    AttentionInput exact = input;
    for (at::Tensor* x : {&exact.q, &exact.k, &exact.v}) *x = x->detach().to(at::kFloat);
    AttentionOutput output = linear_on_cpu(exact, mask, map, query, key, normalised);
    output.out = output.out.to(input.v.scalar_type());
    return output;
  };
  AttentionInput input = testing_inputs::make_input({1, 2, 20, 8}, 3);
  for (at::Tensor* x : {&input.q, &input.k, &input.v}) *x = x->to(at::kBFloat16);
  LoopProjection query, key;
  query.scale = key.scale = 5;
  const at::Tensor out =
      linear_with_gradients(plugin, input, {}, cpu::PointMap::plus_minus_exponential, query, key, true).out;
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  const auto exact = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const at::Tensor expected = linear(exact(input.q) * 5, exact(input.k) * 5, exact(input.v), {});
  EXPECT_LT(relative_error(exact(out), expected), 4e-3); // that of the rounded output
}

// Autocast multiplies by W in bfloat16 but sums squares in float32: y of keys and of queries would differ in
// type.
TEST(CudaGradients, ComputeWhatStandsBeforeAnExponentialInFloat32UnderAutocast) {
  HydrascopeCudaPlugin plugin = plugin_on_cpu();
  const AttentionInput input = trained_input(false);
  LoopProjection query, key;
  query.weight = key.weight = normal({1, 8, 8}, 5) / 4;
  key.half_square = 0.05;
  const auto run = [&] {
    return linear_with_gradients(plugin, input, {}, cpu::PointMap::plus_minus_exponential, query, key, true)
        .out;
  };
  const at::Tensor expected = run();
  static std::vector<at::ScalarType> types;
  types.clear();
  plugin.linear = [](const AttentionInput& own, const at::Tensor& mask, cpu::PointMap map,
                     const LoopProjection& own_query, const LoopProjection& own_key, bool normalised) {
    types = {own.q.scalar_type(), own.k.scalar_type()};
    return plugin_on_cpu().linear(own, mask, map, own_query, own_key, normalised);
  };
  const training::Autocast autocast(c10::kCPU, at::kBFloat16);
  EXPECT_LT(relative_error(run(), expected), 1e-6);
  EXPECT_EQ(types, std::vector<at::ScalarType>({at::kFloat, at::kFloat}));
}

} // namespace
} // namespace hydrascope
