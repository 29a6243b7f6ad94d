#include "engine/models/transformer/linear.h"

#include <array>
#include <string>
#include <thread>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "engine/base/lockstep.h"
#include "engine/models/transformer/cpu/row.h"
#include "engine/models/transformer/row_weights.h"

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

// What each kind of processor runs is the same up to rounding, and a column does not depend on another.
TEST(LinearOfARow, IsTheSameOnEveryProcessor) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  constexpr std::int64_t in = 83, rows = 11;
  const at::Tensor x = at::randn({2, in}, generator), weights = at::randn({rows, in}, generator);
  const std::array<const float*, 2> inputs{x.const_data_ptr<float>(), x.const_data_ptr<float>() + in};
  for (const cpu::Processor processor : cpu::processors())
    for (const auto& [type, number] : {std::pair{at::kFloat, cpu::RowNumber::float32},
                                       {at::kBFloat16, cpu::RowNumber::bfloat16},
                                       {at::kHalf, cpu::RowNumber::float16}}) {
      SCOPED_TRACE(std::string(cpu::name_of(processor)) + " " + c10::toString(type));
      const at::Tensor rounded = weights.to(type), both = at::zeros({2, rows}), one = at::zeros({rows});
      const std::array<float*, 2> results{both.data_ptr<float>(), both.data_ptr<float>() + rows};
      cpu::row_loops(processor).product(inputs.data(), rounded.const_data_ptr(), number, 2, in, rows,
                                        results.data());
      const at::Tensor expected = at::matmul(x.to(at::kDouble), rounded.to(at::kDouble).t());
      EXPECT_LT((both.to(at::kDouble) - expected).abs().max().item<double>(), 1e-5);
      float* const alone = one.data_ptr<float>();
      cpu::row_loops(processor).product(&inputs[1], rounded.const_data_ptr(), number, 1, in, rows, &alone);
      EXPECT_TRUE(at::equal(one, both[1]));
    }
}

// Weights of float32 whose numbers fit in half the bytes are read from there: the same sums.
TEST(LinearOfARow, ReadsFewerBytesWhereThatChangesNoWeight) {
  const at::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor drawn = at::randn({40, 100}, generator), x = at::randn({1, 100}, generator);
  EXPECT_EQ(row_type(drawn), at::kFloat);
  EXPECT_EQ(row_type(drawn.to(at::kBFloat16)), at::kBFloat16);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(c10::toString(type));
    const at::Tensor weights = drawn.to(type).to(at::kFloat);
    if (type == at::kBFloat16 || cpu::best_processor(false) != cpu::Processor::plain) {
      EXPECT_EQ(row_type(weights), type);
    }
    const at::Tensor whole = Linear({{at::cat({weights, drawn}), {}}})(x);
    EXPECT_TRUE(at::equal(Linear({{weights, {}}})(x), whole.narrow(1, 0, 40)));
    for (const double odd : {1.0 / 3, 1e-30, 70000.125, std::nan("")}) {
      at::Tensor changed = weights.clone();
      changed[39][99] = odd;
      EXPECT_EQ(row_type(changed), at::kFloat) << odd;
    }
  }
}

// Two threads in lockstep, each with a team, of which one has another layer or one more at times, and the
// other ends first.
TEST(LinearOfARow, IsTheSameInLockstep) {
  const at::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(4);
  const auto draw = [&](const std::int64_t out, const std::int64_t in) {
    return at::randn({out, in}, generator);
  };
  const at::Tensor x = draw(2, 301);
  const Linear shared({{draw(1001, 301), {}}, {draw(6, 301), {}}}), of_both({{draw(301, 1001), {}}}),
      of_one({{draw(301, 1001), {}}});
  constexpr int steps = 60;
  const auto run = [&](const std::int64_t side) {
    at::Tensor row = x.slice(0, side, side + 1);
    for (int step = 0; step < (side == 0 ? steps / 2 : steps); ++step) {
      const at::Tensor inner = at::tanh(shared.split(row).front());
      if (side == 1 && step % 5 == 4) of_one(inner);
      row = at::tanh((side == 1 && step % 3 == 0 ? of_one : of_both)(inner));
    }
    return row;
  };
  const at::Tensor alone[2] = {run(0), run(1)};
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  for (int repeat = 0; repeat < 10; ++repeat) {
    Lockstep lockstep;
    at::Tensor results[2];
    std::vector<std::thread> members;
    for (const int side : {0, 1})
      members.emplace_back([&, side] {
        const at::NoGradGuard none;
        LockstepMember member(lockstep, side);
        member.enter();
        results[side] = run(side);
      });
    for (std::thread& member : members) member.join();
    for (const int side : {0, 1}) EXPECT_TRUE(at::equal(results[side], alone[side])) << side;
  }
  at::set_num_threads(threads);
}

// Layers of the same tensors share what is made of them.
TEST(LinearOfARow, SharesTheCopyOfItsWeights) {
  const at::Tensor weights = at::zeros({4, 8}), others = at::zeros({4, 8});
  const auto one = RowWeights::of({weights});
  EXPECT_EQ(RowWeights::of({weights}), one);
  EXPECT_NE(RowWeights::of({others}), one);
  EXPECT_NE(RowWeights::of({weights, others}), one);
  EXPECT_NE(RowWeights::of({weights.narrow(0, 0, 2)}), one); // the same address
}

} // namespace
} // namespace hydrascope
