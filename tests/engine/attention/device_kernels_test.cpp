// Every kernel of the registry on an accelerator, against the same on the CPU: output, weights,
// contributions, check, features, global vector, gradients.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/training/loop/autocast.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/reference.h"
#include "tests/support/devices.h"
#include "tests/support/fake_device.h"

namespace hydrascope {
namespace {

using test::accelerator, testing_inputs::Case, testing_inputs::describe, testing_inputs::make_input,
    testing_inputs::moved_parameters, testing_inputs::normal, testing_inputs::relative_error;

constexpr double tolerance = 2e-5; // fused loops on the CPU, composed on the device

AttentionInput on_device(AttentionInput input) {
  for (at::Tensor* x : {&input.q, &input.k, &input.v, &input.layer_input, &input.mask})
    if (x->defined()) *x = x->to(accelerator());
  return input;
}

KernelParameters on_device(KernelParameters parameters) {
  for (auto& [name, x] : parameters) x = x.to(accelerator());
  return parameters;
}

std::vector<Case> cases() {
  return {{2, 2, 50, 16, true, false, {2, 6, 8}}, {1, 2, 70, 8, true, true}, {1, 2, 33, 8}};
}

TEST(OwnMapOnDevice, IsNotBlamedForTheDevicesMemory) {
  if (accelerator() != test::fake_device()) GTEST_SKIP() << "the memory of a real device is not limited";
  const auto kernel = make_kernel(kernel_of_source("typed", "def phi(x):\n    return torch.relu(x) + 1\n"));
  const AttentionInput input = on_device(make_input({1, 2, 999, 8}, 5));
  EXPECT_NO_THROW(kernel->run(input, {}));
  const AttentionInput longer = on_device(make_input({1, 2, 1999, 8}, 5));
  const test::DeviceMemoryLimit no_memory(0);
  EXPECT_THROW(kernel->run(longer, {}), c10::OutOfMemoryError);
}

class KernelOnDevice : public testing::TestWithParam<reference::Row> {
protected:
  // Calls `each` with every input that the kernel supports: on the CPU, and on the device.
  template <typename Each>
  void visit(const Each& each) {
    for (const Case& shape : cases()) {
      SCOPED_TRACE(describe(shape));
      const AttentionInput host = make_input(shape, 5), device = on_device(host);
      EXPECT_EQ(kernel->supports(shape_of(host)).ok, kernel->supports(shape_of(device)).ok);
      if (!kernel->supports(shape_of(host)).ok) continue;
      const KernelParameters parameters = moved_parameters(*kernel, shape, 70);
      each(host, parameters, device, on_device(parameters));
      ++visited;
    }
    EXPECT_GT(visited, 0);
  }

  static void expect_same(const at::Tensor& actual, const at::Tensor& expected, const char* name) {
    EXPECT_EQ(actual.device(), accelerator()) << name;
    EXPECT_EQ(actual.scalar_type(), expected.scalar_type()) << name;
    EXPECT_LT(relative_error(actual.cpu(), expected), tolerance) << name;
    ++comparisons;
  }

  static void TearDownTestSuite() {
    std::printf("%lld comparisons of kernels with the CPU\n", static_cast<long long>(comparisons));
  }

  std::unique_ptr<Kernel> kernel = make_kernel(parse_kernel_spec(GetParam().spec));
  int visited = 0;
  static inline std::int64_t comparisons = 0;
};

TEST_P(KernelOnDevice, OutputIsThatOfTheCpu) {
  const at::NoGradGuard no_gradients;
  visit([&](const AttentionInput& host, const KernelParameters& of_host, const AttentionInput& device,
            const KernelParameters& of_device) {
    const AttentionOutput expected = kernel->run(host, of_host);
    const test::DeviceCounter counter;
    const AttentionOutput actual = kernel->run(device, of_device);
    const at::Tensor finished = kernel->finish(actual.out, device.mask, of_device);
    // local-window asks which keys are near, exponential maps whether one scale holds for all keys: causal
    // ones, and those on both sides of a window.
    const std::string& name = kernel->spec().name;
    const bool may_wait = name == "local-window" || name == "hedgehog-window" || host.causal;
    EXPECT_LE(counter.counts().waits(), may_wait ? 2 : 0);
    expect_same(actual.out, expected.out, "out");
    expect_same(finished, kernel->finish(expected.out, host.mask, of_host), "finished");
    EXPECT_EQ(actual.zero_denominators.read(), expected.zero_denominators.read());
  });
}

TEST_P(KernelOnDevice, DecodingIsThatOfTheCpu) {
  const AttentionInput host = make_input({1, 2, 30, 8, false, true}, 5);
  if (const Support support = kernel->decodes(shape_of(host)); !support.ok) GTEST_SKIP() << support.reason;
  const KernelParameters parameters = moved_parameters(*kernel, {1, 2, 30, 8}, 70);
  const auto decoded = [&](const AttentionInput& input, const KernelParameters& own) {
    const auto state = kernel->decoding(shape_of(input), own);
    at::Tensor last;
    for (std::int64_t first = 0; first < 30; first += first == 0 ? 25 : 1) { // 25 tokens, then one by one
      AttentionInput next = input;
      const std::int64_t end = first == 0 ? 25 : first + 1;
      for (at::Tensor* x : {&next.q, &next.k, &next.v}) *x = x->slice(2, first, end);
      next.layer_input = input.layer_input.slice(1, first, end);
      last = state->extend(next);
    }
    return last;
  };
  expect_same(decoded(on_device(host), on_device(parameters)), decoded(host, parameters), "the last token");
}

TEST_P(KernelOnDevice, WeightsAreThoseOfTheCpu) {
  const at::NoGradGuard no_gradients;
  visit([&](const AttentionInput& host, const KernelParameters& of_host, const AttentionInput& device,
            const KernelParameters& of_device) {
    const at::Tensor rows = at::tensor({host.q.size(2) - 1, std::int64_t{1}});
    expect_same(kernel->weights(device, of_device), kernel->weights(host, of_host), "all rows");
    for (const at::Tensor& own : {rows, rows.to(accelerator())})
      expect_same(kernel->weights(device, of_device, own), kernel->weights(host, of_host, rows), "two rows");
    const double check = kernel->weights_check(device, of_device, rows);
    EXPECT_LT(check, 1e-3);
    EXPECT_NEAR(check, kernel->weights_check(host, of_host, rows), 1e-3);
  });
}

TEST_P(KernelOnDevice, ContributionsAreThoseOfTheCpu) {
  const at::NoGradGuard no_gradients;
  visit([&](const AttentionInput& host, const KernelParameters& of_host, const AttentionInput& device,
            const KernelParameters& of_device) {
    const at::Tensor g = normal(host.q.sizes(), 9), here = g.to(accelerator());
    expect_same(kernel->contributions(device, of_device, std::nullopt, here),
                kernel->contributions(host, of_host, std::nullopt, g), "all queries");
    expect_same(kernel->contributions(device, of_device, 3, here.select(2, 3)),
                kernel->contributions(host, of_host, 3, g.select(2, 3)), "one query");
  });
}

TEST_P(KernelOnDevice, FeaturesAreThoseOfTheCpu) {
  const at::NoGradGuard no_gradients;
  visit([&](const AttentionInput& host, const KernelParameters& of_host, const AttentionInput& device,
            const KernelParameters& of_device) {
    const at::Tensor rows = at::tensor({std::int64_t{4}, std::int64_t{1}});
    const auto expected = features_of(*kernel, host, of_host, rows, {});
    const auto actual = features_of(*kernel, device, of_device, rows, {});
    ASSERT_EQ(actual.has_value(), expected.has_value());
    if (expected) {
      expect_same(actual->query, expected->query, "query features");
      expect_same(actual->key, expected->key, "key features");
    }
    if (host.causal) return; // every query has a global vector of its own
    const auto global = kernel->global_vector(host, of_host, rows);
    if (!global) return;
    const auto on_device = kernel->global_vector(device, of_device, rows);
    expect_same(on_device->vector, global->vector, "global vector");
    expect_same(on_device->gate, global->gate, "gate");
  });
}

TEST_P(KernelOnDevice, GradientsAreThoseOfTheCpu) {
  visit([&](const AttentionInput& host, const KernelParameters& of_host, const AttentionInput& device,
            const KernelParameters& of_device) {
    const at::Tensor g = normal(host.q.sizes(), 9);
    const auto gradients = [&](AttentionInput input, KernelParameters parameters) {
      std::vector<at::Tensor> leaves;
      for (at::Tensor* x : {&input.q, &input.k, &input.v})
        leaves.push_back(*x = x->detach().requires_grad_());
      for (auto& [name, x] : parameters) leaves.push_back(x = x.detach().requires_grad_());
      const at::Tensor out = kernel->finish(kernel->run(input, parameters).out, input.mask, parameters);
      ((out * g.to(out.device())).sum() + kernel->weights(input, parameters).square().sum()).backward();
      for (at::Tensor& leaf : leaves) leaf = leaf.grad();
      return leaves;
    };
    const std::vector<at::Tensor> expected = gradients(host, of_host), actual = gradients(device, of_device);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].defined(), expected[i].defined()) << i;
      if (expected[i].defined()) expect_same(actual[i], expected[i], "gradient");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, KernelOnDevice, testing::ValuesIn(reference::rows()),
                         [](const auto& instance) {
                           std::string name = instance.param.spec;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(KernelsOnDevice, RefusesParametersThatLieElsewhere) {
  const Case shape{1, 2, 9, 8};
  const auto kernel = make_kernel({"hedgehog", {}});
  const KernelParameters parameters = moved_parameters(*kernel, shape, 70);
  const AttentionInput host = make_input(shape, 5);
  EXPECT_THROW(kernel->run(on_device(host), parameters), UsageError);
  EXPECT_THROW(kernel->run(host, on_device(parameters)), UsageError);
}

// Denominators of these inputs are beyond float16, which ends at 65,504.
TEST(KernelsOnDevice, SumInFloat32UnderAutocastToFloat16) {
  for (const char* const name : {"elu", "based"})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::string(name) + (causal ? " causal" : ""));
      const auto kernel = make_kernel({name, {}});
      AttentionInput host = make_input({1, 1, 1024, 32, false, causal}, 5, 4);
      for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(at::kHalf);
      AttentionInput device = on_device(host);
      for (at::Tensor* x : {&device.q, &device.k, &device.v}) x->requires_grad_();
      for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(at::kFloat).requires_grad_();
      const auto under_autocast = [&] {
        const training::Autocast autocast(accelerator(), at::kHalf);
        return kernel->run(device, {}).out;
      };
      const at::Tensor g = normal(host.v.sizes(), 9).to(at::kHalf), expected = kernel->run(host, {}).out;
      const at::Tensor out = under_autocast();
      EXPECT_EQ(out.scalar_type(), at::kHalf);
      EXPECT_LT(relative_error(out.detach().cpu(), expected.detach()), 2e-3);
      (out * g.to(accelerator())).sum().backward();
      (expected * g.to(at::kFloat)).sum().backward();
      EXPECT_LT(relative_error(device.q.grad().cpu(), host.q.grad()), 5e-3);
      EXPECT_LT(relative_error(device.k.grad().cpu(), host.k.grad()), 5e-3);
      EXPECT_LT(relative_error(device.v.grad().cpu(), host.v.grad()), 5e-3);
    }
}

TEST(KernelsOnDevice, ZeroDenominatorsStayThereUntilTheyAreRead) {
  AttentionInput input = make_input({1, 2, 6, 4}, 3);
  input.q = input.q.abs();
  input.k = input.k.abs();
  input.q.select(2, 2).neg_(); // ReLU leaves nothing of this query
  const AttentionInput device = on_device(input);
  const auto kernel = make_kernel({"relu", {}});
  const test::DeviceCounter counter;
  RowCount count = kernel->run(device, {}).zero_denominators;
  count += kernel->run(device, {}).zero_denominators;
  count += 3;
  EXPECT_EQ(counter.counts().waits(), 0);
  EXPECT_EQ(count.read(), 7);
  if (!test::tests_are_on_gpu()) {
    EXPECT_EQ(counter.counts().waits(), 1);
  }
}

} // namespace
} // namespace hydrascope
