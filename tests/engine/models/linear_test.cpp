#include "engine/models/transformer/linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

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

} // namespace
} // namespace hydrascope
