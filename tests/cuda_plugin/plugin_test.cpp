// The CUDA plug-in as LibTorch's tensors reach it, its kernels emulated: strides, types, refusals and
// devices. (What the kernels compute at all shapes: tests/cuda_emulation.)
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/kernel.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/engine/attention/inputs.h"

extern "C" const hydrascope::HydrascopeCudaPlugin* hydrascope_cuda_plugin_entry();

namespace hydrascope {
namespace {

using cpu::PointMap, testing_inputs::relative_error;

const HydrascopeCudaPlugin& plugin() { return *hydrascope_cuda_plugin_entry(); }

AttentionInput on_gpu(const AttentionInput& host, const at::Device device = {at::kCUDA, 0}) {
  AttentionInput result = host;
  for (at::Tensor* x : {&result.q, &result.k, &result.v, &result.mask})
    if (x->defined()) *x = x->to(device);
  return result;
}

at::Tensor run_on_cpu(const char* kernel, const AttentionInput& input) {
  return make_kernel({kernel, {}})->run(input, {}).out;
}

TEST(CudaPlugin, GivesTheCpusOutput) {
  const AttentionInput host = testing_inputs::make_input({2, 3, 40, 8, true}, 3), device = on_gpu(host);
  const at::Tensor hydra = plugin().hydra_cosine(device.q, device.k, device.v, device.mask, false);
  EXPECT_LT(relative_error(hydra.cpu(), run_on_cpu("hydra-cosine", host)), 1e-5);
  const AttentionOutput elu = plugin().linear(device, device.mask, PointMap::one_plus_elu, {}, {}, true);
  EXPECT_LT(relative_error(elu.out.cpu(), run_on_cpu("elu", host)), 1e-5);
}

TEST(CudaPlugin, GivesTheCpusCausalOutput) {
  AttentionInput host = testing_inputs::make_input({2, 3, 300, 8, true}, 3);
  host.causal = true;
  const AttentionInput device = on_gpu(host);
  const at::Tensor hydra = plugin().hydra_cosine(device.q, device.k, device.v, device.mask, true);
  EXPECT_LT(relative_error(hydra.cpu(), run_on_cpu("hydra-cosine", host)), 1e-5);
  const AttentionOutput elu = plugin().linear(device, device.mask, PointMap::one_plus_elu, {}, {}, true);
  EXPECT_LT(relative_error(elu.out.cpu(), run_on_cpu("elu", host)), 1e-5);
}

// The loss by q, k and v of a fixed sum of the output, by LibTorch through the composed kernel.
TEST(CudaPlugin, GivesTheCpusCausalGradients) {
  AttentionInput host = testing_inputs::make_input({2, 3, 70, 8, true}, 3);
  host.causal = true;
  const AttentionInput device = on_gpu(host);
  const at::Tensor g = testing_inputs::normal(host.v.sizes(), 5);
  const InputGradients hydra = plugin().hydra_cosine_gradients(device.q, device.k, device.v, device.mask,
                                                               true, g.to(device.q.device()));
  for (at::Tensor* x : {&host.q, &host.k, &host.v}) x->requires_grad_();
  (make_kernel({"hydra-cosine", {}})->run(host, {}).out * g).sum().backward();
  EXPECT_LT(relative_error(hydra.q.cpu(), host.q.grad()), 1e-5);
  EXPECT_LT(relative_error(hydra.k.cpu(), host.k.grad()), 1e-5);
  EXPECT_LT(relative_error(hydra.v.cpu(), host.v.grad()), 1e-5);
  for (at::Tensor* x : {&host.q, &host.k, &host.v}) x->mutable_grad() = at::Tensor();
  const InputGradients elu = plugin().linear_gradients(device, device.mask, PointMap::one_plus_elu, {}, {},
                                                       true, g.to(device.q.device()));
  (make_kernel({"elu", {}})->run(host, {}).out * g).sum().backward();
  EXPECT_LT(relative_error(elu.q.cpu(), host.q.grad()), 1e-5);
  EXPECT_LT(relative_error(elu.k.cpu(), host.k.grad()), 1e-5);
  EXPECT_LT(relative_error(elu.v.cpu(), host.v.grad()), 1e-5);
}

TEST(CudaPlugin, RefusesWhatItDoesNotTake) {
  const AttentionInput input = on_gpu(testing_inputs::make_input({1, 1, 8, 8}, 3));
  EXPECT_THROW(plugin().linear(input, {}, PointMap::taylor, {}, {}, true), c10::Error);
  EXPECT_THROW(plugin().linear_gradients(input, {}, PointMap::taylor, {}, {}, true, input.v), c10::Error);
  const AttentionInput wide = on_gpu(testing_inputs::make_input({1, 1, 8, 144}, 3));
  EXPECT_THROW(plugin().linear(wide, {}, PointMap::relu, {}, {}, true), c10::Error);
  const LoopProjection host{.weight = testing_inputs::normal({1, 8, 8}, 5)};
  const LoopProjection own{.weight = host.weight.to(input.q.device())};
  EXPECT_NO_THROW(plugin().linear(input, {}, PointMap::relu, own, own, true));
  EXPECT_THROW(plugin().linear(input, {}, PointMap::relu, own, host, true), c10::Error);
}

TEST(CudaPlugin, LimitsTheHeadsOfLinearAttentionAlone) {
  const AttentionInput host = testing_inputs::make_input({1, max_cuda_sequences + 1, 2, 1}, 3),
                       device = on_gpu(host);
  const at::Tensor hydra = plugin().hydra_cosine(device.q, device.k, device.v, {}, false);
  EXPECT_LT(relative_error(hydra.cpu(), run_on_cpu("hydra-cosine", host)), 1e-5);
  EXPECT_THROW(plugin().linear(device, {}, PointMap::relu, {}, {}, true), c10::Error);
  EXPECT_THROW(plugin().linear_gradients(device, {}, PointMap::relu, {}, {}, true, device.v), c10::Error);
}

// One W may serve all heads, but b is read for each of them.
TEST(CudaPlugin, RefusesMapsOfAnotherNumberOfHeads) {
  const AttentionInput input = on_gpu(testing_inputs::make_input({1, 4, 8, 8}, 3));
  const auto map = [&](const std::int64_t weights, const std::int64_t biases) {
    return LoopProjection{.weight = testing_inputs::normal({weights, 8, 8}, 5).to(input.q.device()),
                          .bias = testing_inputs::normal({biases, 8}, 6).to(input.q.device())};
  };
  const auto run = [&](const LoopProjection& query, const LoopProjection& key) {
    plugin().linear(input, {}, PointMap::relu, query, key, true);
  };
  EXPECT_NO_THROW(run(map(4, 4), map(1, 4)));
  EXPECT_THROW(run(map(4, 4), map(1, 1)), c10::Error);
  EXPECT_THROW(run(map(1, 1), map(4, 4)), c10::Error);
  EXPECT_THROW(run(map(4, 4), map(2, 4)), c10::Error);
}

TEST(CudaPlugin, AsksTheTensorsDevice) {
  EXPECT_TRUE(plugin().runs_on(0));
  EXPECT_FALSE(plugin().runs_on(2)); // compute capability 7.0
  const auto takes = [](const at::DeviceIndex device) {
    return plugin().linear_gradients_take(PointMap::plus_minus_exponential, true, at::kFloat, 128, 128, false,
                                          device);
  };
  EXPECT_TRUE(takes(0));
  EXPECT_FALSE(takes(1)); // a tile does not fit its shared memory
  const auto takes_causal = [](const at::DeviceIndex device, const PointMap map) {
    return plugin().linear_takes(map, true, at::kFloat, 128, 128, true, device);
  };
  EXPECT_TRUE(takes_causal(0, PointMap::plus_minus_exponential));
  EXPECT_FALSE(takes_causal(1, PointMap::plus_minus_exponential));
  EXPECT_TRUE(takes_causal(1, PointMap::one_plus_elu)); // half as many features
  EXPECT_EQ(cuda_emulation::current_device(), 0);
  const AttentionInput input = on_gpu(testing_inputs::make_input({1, 1, 8, 128}, 3), {at::kCUDA, 1});
  EXPECT_THROW(plugin().linear_gradients(input, {}, PointMap::plus_minus_exponential, {}, {}, true, input.v),
               c10::Error);
  EXPECT_EQ(shape_of(input).device_index, 1);
}

} // namespace
} // namespace hydrascope
