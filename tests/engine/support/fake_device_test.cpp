#include "tests/support/fake_device.h"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace hydrascope::test {
namespace {

at::Tensor drawn(const at::IntArrayRef shape, const std::uint64_t seed = 1) {
  return at::randn(shape, at::detail::createCPUGenerator(seed));
}

at::Tensor on_device(const at::Tensor& x) { return x.to(fake_device()); }

using Operation = std::function<at::Tensor(const at::Tensor&)>; // of a (2,3,4,6) tensor on any device

// Parameters are moved to where x is.
const std::vector<std::pair<const char*, Operation>>& operations() {
  static const std::vector<std::pair<const char*, Operation>> all{
      {"matmul", [](const at::Tensor& x) { return at::matmul(x, x.transpose(2, 3)); }},
      {"softmax", [](const at::Tensor& x) { return at::softmax(x, -1); }},
      {"linear",
       [](const at::Tensor& x) {
         return at::linear(x, drawn({5, 6}).to(x.device()));
       }},
      {"layer_norm", [](const at::Tensor& x) { return at::layer_norm(x, {6}); }},
      {"conv2d",
       [](const at::Tensor& x) {
         return at::conv2d(x, drawn({7, 3, 2, 2}).to(x.device()), {}, 2);
       }},
      {"sdpa", [](const at::Tensor& x) { return at::scaled_dot_product_attention(x, x, x); }},
      {"a view that is not contiguous",
       [](const at::Tensor& x) { return x.transpose(1, 3).slice(2, 1) * 2; }},
      {"unflatten and flatten",
       [](const at::Tensor& x) {
         return x.unflatten(3, {2, 3}).transpose(3, 4).flatten(2);
       }},
      {"in place", [](const at::Tensor& x) { return x.clone().mul_(3).masked_fill_(x > 0, 1); }},
      {"a part written",
       [](const at::Tensor& x) {
         at::Tensor copy = x.clone();
         copy.slice(2, 1, 3).copy_(x.slice(2, 0, 2));
         return copy;
       }},
      {"index_select",
       [](const at::Tensor& x) { return x.index_select(3, at::arange(3, x.options().dtype(at::kLong))); }},
      {"bfloat16", [](const at::Tensor& x) { return x.to(at::kBFloat16).exp().to(at::kFloat); }}};
  return all;
}

TEST(FakeDevice, GivesTheNumbersOfTheCpu) {
  const at::Tensor x = drawn({2, 3, 4, 6});
  for (const auto& [name, operation] : operations()) {
    const at::Tensor result = operation(on_device(x));
    EXPECT_EQ(result.device(), fake_device()) << name;
    EXPECT_TRUE(at::allclose(result.cpu(), operation(x), 1e-6, 1e-6))
        << name; // LibTorch composes some otherwise
  }
}

TEST(FakeDevice, DifferentiatesAsTheCpuDoes) {
  if (test::tests_are_on_gpu()) GTEST_SKIP() << "LibTorch takes gradients on one accelerator alone";
  const auto gradient = [](const at::Tensor& x) {
    const at::Tensor leaf = x.detach().set_requires_grad(true);
    const at::Tensor value =
        (at::softmax(at::matmul(leaf, leaf.transpose(0, 1)), -1) * leaf.sum()).square().sum();
    return torch::autograd::grad({value}, {leaf}).front();
  };
  const at::Tensor x = drawn({4, 4});
  EXPECT_TRUE(at::equal(gradient(on_device(x)).cpu(), gradient(x)));
}

TEST(FakeDevice, RefusesATensorOnTheWrongDevice) {
  const at::Tensor x = drawn({4, 4}), here = on_device(x);
  const at::Tensor indices = at::arange(2);
  const std::vector<std::pair<const char*, std::function<at::Tensor()>>> mistakes{
      {"add", [&] { return here + x; }},
      {"matmul", [&] { return at::matmul(x, here); }},
      {"linear", [&] { return at::linear(here, x); }},
      {"where", [&] { return at::where(x > 0, here, 0.0); }},
      {"cat",
       [&] {
         return at::cat({here, x});
       }},
      {"index_select", [&] { return here.index_select(0, indices); }},
      {"embedding", [&] { return at::embedding(here, indices); }},
      {"layer_norm", [&] { return at::layer_norm(here, {4}, x.select(0, 0)); }},
      {"masked_fill", [&] { return here.masked_fill(x > 0, 0); }},
      {"in place", [&] { return here.clone().add_(x); }},
      {"conv2d",
       [&] {
         return at::conv2d(on_device(drawn({1, 1, 4, 4})), drawn({1, 1, 2, 2}));
       }},
      {"a result of the CPU", [&] {
         at::Tensor out = drawn({4, 4});
         return at::mul_out(out, here, here);
       }}};
  for (const auto& [name, mistake] : mistakes) EXPECT_THROW(mistake(), c10::Error) << name;
}

TEST(FakeDevice, AllowsWhatCudaAllows) {
  const at::Tensor x = drawn({4, 4}), here = on_device(x);
  EXPECT_TRUE(at::equal((here * at::full({}, 2.0)).cpu(), x * 2)); // a single number
  const at::Tensor indices = at::arange(2);
  EXPECT_TRUE(at::equal(here.index({indices}).cpu(), x.index({indices})));
}

TEST(FakeDevice, CountsWhatTheHostWaitsFor) {
  const at::Tensor here = on_device(drawn({4, 4}));
  const DeviceCounter counter;
  const at::Tensor sum = (here * 2).sum();
  EXPECT_EQ(counter.counts().waits(), 0);
  EXPECT_EQ(counter.counts().operators, 2);
  EXPECT_TRUE(here.ne(0).any().item<bool>());
  EXPECT_EQ(counter.counts().numbers_read, 1);
  sum.cpu();
  on_device(drawn({2}));
  EXPECT_EQ(counter.counts().copies_to_cpu, 1);
  EXPECT_EQ(counter.counts().copies_to_device, 1);
  EXPECT_EQ(counter.counts().waits(), 2);
}

TEST(FakeDeviceDeathTest, ItsMemoryIsNotTheHosts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const at::Tensor here = on_device(drawn({4, 4}));
  EXPECT_EXIT(std::exit(static_cast<const float*>(here.const_data_ptr())[0] > 0 ? 3 : 4),
              testing::KilledBySignal(SIGSEGV), "");
}

} // namespace
} // namespace hydrascope::test
