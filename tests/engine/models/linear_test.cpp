#include "engine/models/transformer/linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/models/transformer/cpu/row.h"

namespace hydrascope {
namespace {

constexpr std::int64_t heads = 3, head_width = 8, width = heads * head_width, tokens = 11;

// A kernel with random maps between random projections and a random input.
struct Block {
  explicit Block(const KernelSpec& spec) : kernel(make_kernel(spec)) {
    at::Generator generator = at::detail::createCPUGenerator(1);
    const auto draw = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator); };
    for (auto& [name, value] : kernel->initial_parameters({heads, head_width}, 0))
      parameters[name] = value + 0.3 * draw(value.sizes());
    std::vector<Linear::Part> parts;
    for (int i = 0; i < 3; ++i) parts.push_back({draw({width, width}) / 5, draw({width})});
    qkv = std::make_unique<Linear>(std::move(parts));
    x = draw({2, tokens, width});
  }

  at::Tensor out(const Linear& projections, const KernelParameters& own) const {
    std::vector<at::Tensor> parts = projections.split(x);
    for (at::Tensor& part : parts) part = part.view({2, tokens, heads, head_width}).transpose(1, 2);
    AttentionInput input;
    input.q = parts[0];
    input.k = parts[1];
    input.v = parts[2];
    return kernel->run(input, own).out;
  }
  std::shared_ptr<const FoldedProjection> fold() const { return folded.of(*qkv, *kernel, parameters, heads); }

  std::unique_ptr<Kernel> kernel;
  KernelParameters parameters;
  std::unique_ptr<Linear> qkv;
  at::Tensor x;
  FoldedProjections folded;
};

class FoldedProjectionsOf : public ::testing::TestWithParam<KernelSpec> {};

TEST_P(FoldedProjectionsOf, GiveTheSameOutput) {
  const at::NoGradGuard no_gradients;
  const Block block(GetParam());
  EXPECT_EQ(block.fold(), nullptr); // met for the first time
  const auto folded = block.fold();
  ASSERT_NE(folded, nullptr);
  EXPECT_EQ(block.fold(), folded);
  const at::Tensor expected = block.out(*block.qkv, block.parameters);
  const at::Tensor difference = block.out(folded->projections, folded->parameters) - expected;
  EXPECT_LT(difference.abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>());
}

INSTANTIATE_TEST_SUITE_P(Kernels, FoldedProjectionsOf,
                         ::testing::Values(KernelSpec{"hedgehog"}, KernelSpec{"hedgehog", {{"shared", "1"}}},
                                           KernelSpec{"hedgehog", {{"bias", "0"}}},
                                           KernelSpec{"hedgehog-softmax"}, KernelSpec{"t2r"},
                                           KernelSpec{"t2r-hh"}));

TEST(FoldedProjections, FollowTheMapsThatTheyHold) {
  const at::NoGradGuard no_gradients;
  Block block(KernelSpec{"hedgehog"});
  block.fold();
  const auto before = block.fold();
  block.parameters["query_map.weight"] *= 2; // in place
  EXPECT_EQ(block.fold(), nullptr);
  const auto after = block.fold();
  ASSERT_NE(after, nullptr);
  EXPECT_NE(after, before);
  const at::Tensor expected = block.out(*block.qkv, block.parameters);
  const at::Tensor difference = block.out(after->projections, after->parameters) - expected;
  EXPECT_LT(difference.abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>());
}

TEST(FoldedProjections, AreThoseOfKernelsWithMapsAlone) {
  for (const char* name : {"softmax", "elu", "performer", "hydra-cosine", "hedgehog-untrained"}) {
    const Block block(KernelSpec{name});
    block.fold();
    EXPECT_EQ(block.fold(), nullptr) << name;
  }
}

// A single row goes through loops of its own: odd widths, several parts, biases, either type.
TEST(LinearOfARow, IsTheProduct) {
  const at::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(2);
  const auto draw = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator); };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const std::int64_t in : {1, 7, 16, 33, 64, 100, 576}) {
      SCOPED_TRACE(std::to_string(in) + " " + c10::toString(type));
      std::vector<Linear::Part> parts;
      for (const std::int64_t out : {5, 1, 300}) {
        const at::Tensor bias = out == 1 ? at::Tensor() : draw({out}).to(type);
        parts.push_back({draw({out, in}).to(type), bias});
      }
      const Linear linear(parts);
      const at::Tensor x = draw({1, 1, in}).to(type);
      const std::vector<at::Tensor> all = linear.split(x);
      ASSERT_EQ(all.size(), parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        at::Tensor expected = at::matmul(x.to(at::kDouble), parts[i].weight.to(at::kDouble).t());
        if (parts[i].bias.defined()) expected = expected + parts[i].bias.to(at::kDouble);
        EXPECT_EQ(all[i].sizes(), expected.sizes());
        EXPECT_EQ(all[i].scalar_type(), type);
        const double most = std::max(1.0, expected.abs().max().item<double>());
        const double error = (all[i].to(at::kDouble) - expected).abs().max().item<double>();
        EXPECT_LT(error, (type == at::kFloat ? 1e-5 : 8e-3) * most);
      }
    }
}

// What each kind of processor runs is the same up to rounding.
TEST(LinearOfARow, IsTheSameOnEveryProcessor) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  constexpr std::int64_t in = 83, rows = 11;
  const at::Tensor x = at::randn({in}, generator), weights = at::randn({rows, in}, generator);
  const at::Tensor halves = weights.to(at::kBFloat16);
  for (const cpu::Processor processor : cpu::processors())
    for (const bool half : {false, true}) {
      at::Tensor out = at::zeros({rows});
      cpu::row_loops(processor).product(
          x.const_data_ptr<float>(), half ? halves.const_data_ptr() : weights.const_data_ptr(),
          half ? cpu::Element::bfloat16 : cpu::Element::float32, in, rows, out.data_ptr<float>());
      const at::Tensor expected = at::matmul((half ? halves : weights).to(at::kDouble), x.to(at::kDouble));
      EXPECT_LT((out.to(at::kDouble) - expected).abs().max().item<double>(), 1e-5) << cpu::name_of(processor);
    }
}

} // namespace
} // namespace hydrascope
