// Whole models through the fused CUDA kernels without a GPU: on the fake device, the plug-in being that of
// emulated kernels, which is called with copies on an emulated CUDA device.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/models/transformer/model.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/runner.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/checkout.h"
#include "tests/support/fake_device.h"

extern "C" const hydrascope::HydrascopeCudaPlugin* hydrascope_cuda_plugin_entry();

namespace hydrascope {
namespace {

using testing_inputs::relative_error;

const HydrascopeCudaPlugin& emulated() { return *hydrascope_cuda_plugin_entry(); }

std::int64_t calls = 0; // of the plug-in's attention

at::Tensor to_emulated(const at::Tensor& x) {
  if (!x.defined()) return x;
  EXPECT_EQ(x.device().type(), test::fake_device().type());
  return x.cpu().to(at::Device(at::kCUDA, 0));
}
at::Tensor to_fake(const at::Tensor& x) { return x.defined() ? x.cpu().to(test::fake_device()) : x; }

LoopProjection to_emulated(LoopProjection projection) {
  for (at::Tensor* x : {&projection.weight, &projection.bias, &projection.token_weights})
    *x = to_emulated(*x);
  return projection;
}
AttentionInput to_emulated(AttentionInput input) {
  for (at::Tensor* x : {&input.q, &input.k, &input.v, &input.mask}) *x = to_emulated(*x);
  input.layer_input = at::Tensor();
  return input;
}
InputGradients to_fake(const InputGradients& gradients) {
  return {to_fake(gradients.q), to_fake(gradients.k), to_fake(gradients.v)};
}

const HydrascopeCudaPlugin on_fake{
    .version = hydrascope_cuda_plugin_version,
    .runs_on = [](at::DeviceIndex) { return emulated().runs_on(0); },
    .hydra_cosine =
        [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
           const bool causal) {
          ++calls;
          return to_fake(emulated().hydra_cosine(to_emulated(q), to_emulated(k), to_emulated(v),
                                                 to_emulated(mask), causal));
        },
    .hydra_cosine_gradients =
        [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
           const bool causal, const at::Tensor& grad_out) {
          ++calls;
          return to_fake(emulated().hydra_cosine_gradients(to_emulated(q), to_emulated(k), to_emulated(v),
                                                           to_emulated(mask), causal, to_emulated(grad_out)));
        },
    .linear_takes =
        [](const cpu::PointMap map, const bool normalised, const at::ScalarType type,
           const std::int64_t head_width, const std::int64_t outputs, const bool causal, at::DeviceIndex) {
          return emulated().linear_takes(map, normalised, type, head_width, outputs, causal, 0);
        },
    .linear =
        [](const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
           const LoopProjection& query, const LoopProjection& key, const bool normalised) {
          ++calls;
          AttentionOutput output = emulated().linear(to_emulated(input), to_emulated(mask), map,
                                                     to_emulated(query), to_emulated(key), normalised);
          output.out = to_fake(output.out);
          output.zero_denominators = output.zero_denominators.read();
          return output;
        },
    .linear_gradients_take =
        [](const cpu::PointMap map, const bool normalised, const at::ScalarType type,
           const std::int64_t head_width, const std::int64_t outputs, const bool causal, at::DeviceIndex) {
          return emulated().linear_gradients_take(map, normalised, type, head_width, outputs, causal, 0);
        },
    .linear_gradients =
        [](const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
           const LoopProjection& query, const LoopProjection& key, const bool normalised,
           const at::Tensor& grad_out) {
          ++calls;
          return to_fake(emulated().linear_gradients(to_emulated(input), to_emulated(mask), map,
                                                     to_emulated(query), to_emulated(key), normalised,
                                                     to_emulated(grad_out)));
        },
};

class FusedModels : public ::testing::Test {
protected:
  static void SetUpTestSuite() { set_fused_kernels(test::fake_device().type(), &on_fake); }
};

std::filesystem::path golden(const std::string& name) {
  return test::source_folder() / "tests/golden" / name;
}

RunRequest request_for(const std::string& model, const std::string& kernel) {
  RunRequest request;
  request.model_folder = golden(model);
  if (model == "models/deit")
    request.input =
        ImageInput{std::make_shared<const Image>(load_image(golden("images/pictures/gradient.png"))), "", {}};
  else
    request.input = TextInput{"the cat sat on a mat", std::nullopt};
  request.schedule = ScheduleText{.kernel = kernel};
  request.quantities.add(HiddenStatesKey{});
  request.quantities.add(FocusKey{0});
  return request;
}

std::shared_ptr<const RunResult> run_on(RunRequest request, const std::string& device) {
  request.execution.device = device;
  return Runner().run(request);
}

double difference(const Array& actual, const Array& expected) {
  EXPECT_EQ(actual.shape, expected.shape);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(actual.values[i] - expected.values[i])));
    largest = std::max(largest, std::abs(static_cast<double>(expected.values[i])));
  }
  return worst / largest;
}

// The focus map's gradients go through the kernels, too.
TEST_F(FusedModels, GiveTheCpusHiddenStatesAndFocusMaps) {
  for (const char* model : {"models/deit", "models/bert", "decoders/written"})
    for (const char* kernel : {"hydra-cosine", "hedgehog", "elu", "exp-t1", "t2r"}) {
      SCOPED_TRACE(std::string(model) + " " + kernel);
      const RunRequest request = request_for(model, kernel);
      const auto host = run_on(request, "cpu");
      calls = 0;
      const auto device = run_on(request, test::fake_device().str());
      EXPECT_GT(calls, std::ssize(host->layers)); // one in each layer, and gradients
      for (const LayerRun& layer : device->layers)
        EXPECT_TRUE(layer.path.starts_with("fused cuda")) << layer.path;
      const std::vector<Array>& expected = test::read(*host, HiddenStatesKey{});
      const std::vector<Array>& actual = test::read(*device, HiddenStatesKey{});
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_LT(difference(actual[i], expected[i]), 1e-4) << i;
      EXPECT_LT(difference(test::read(*device, FocusKey{0}).contributions,
                           test::read(*host, FocusKey{0}).contributions),
                1e-4);
    }
}

// Heads of 64 in a half type have kernels of their own, which hold the trained map.
TEST_F(FusedModels, HeadsOf64InHalfTypesWithTheirMaps) {
  const at::NoGradGuard no_gradients;
  const auto kernel = make_kernel({"hedgehog", {}});
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    AttentionInput host = testing_inputs::make_input({1, 2, 70, 64, true}, 3);
    KernelParameters parameters = kernel->initial_parameters({2, 64}, 0);
    for (auto& [name, value] : parameters) value = value + 0.05 * testing_inputs::normal(value.sizes(), 9);
    AttentionInput device = host;
    for (at::Tensor* x : {&device.q, &device.k, &device.v}) *x = x->to(type).to(test::fake_device());
    device.mask = device.mask.to(test::fake_device());
    KernelParameters there;
    for (const auto& [name, value] : parameters) there[name] = value.to(test::fake_device());
    calls = 0;
    const AttentionOutput output = kernel->run(device, there);
    EXPECT_EQ(calls, 1);
    for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(type).to(at::kFloat);
    EXPECT_LT(relative_error(output.out.cpu().to(at::kFloat), kernel->run(host, parameters).out), 2e-2);
  }
}

// The heads of a group have the map of their keys with its bias; of one key/value head all have the same.
TEST_F(FusedModels, GroupedHeadsHaveTheBiasOfTheirKeys) {
  const at::NoGradGuard no_gradients;
  const auto kernel = make_kernel({"hedgehog", {}});
  for (const auto& [type, width] : {std::pair{at::kFloat, std::int64_t{8}}, {at::kHalf, 64}})
    for (const std::int64_t key_heads : {1, 2})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(std::to_string(width) + " features, " + std::to_string(key_heads) + " key/value heads" +
                     (causal ? ", causal" : ""));
        AttentionInput host = testing_inputs::make_input({1, 4, 40, width, true, causal}, 3);
        host.key_heads = key_heads;
        for (at::Tensor* x : {&host.k, &host.v}) *x = for_each_head(one_of_each_group(*x, key_heads), 4);
        KernelParameters parameters = kernel->initial_parameters({4, width, key_heads}, 0);
        for (auto& [name, value] : parameters)
          value = value + (name.ends_with(".bias") ? 1 : 0.05) * testing_inputs::normal(value.sizes(), 9);
        AttentionInput device = host;
        for (at::Tensor* x : {&device.q, &device.k, &device.v}) *x = x->to(type).to(test::fake_device());
        device.mask = device.mask.to(test::fake_device());
        KernelParameters there;
        for (const auto& [name, value] : parameters) there[name] = value.to(test::fake_device());
        calls = 0;
        const at::Tensor out = kernel->run(device, there).out.cpu().to(at::kFloat);
        EXPECT_EQ(calls, 1);
        for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(type).to(at::kFloat);
        EXPECT_LT(relative_error(out, kernel->run(host, parameters).out), type == at::kFloat ? 1e-4 : 2e-2);
      }
}

// Gradients of the maps and of q, k and v, as training has them.
TEST_F(FusedModels, GradientsReachTheMaps) {
  const auto kernel = make_kernel({"hedgehog", {}});
  for (const bool causal : {false, true}) {
    AttentionInput host = testing_inputs::make_input({2, 3, 40, 8, true}, 3);
    host.causal = causal;
    KernelParameters parameters = kernel->initial_parameters({3, 8}, 0);
    AttentionInput device = host;
    KernelParameters there;
    for (at::Tensor* x : {&device.q, &device.k, &device.v})
      *x = x->detach().to(test::fake_device()).requires_grad_();
    device.mask = device.mask.to(test::fake_device());
    for (at::Tensor* x : {&host.q, &host.k, &host.v}) x->requires_grad_();
    for (auto& [name, value] : parameters) {
      there[name] = value.to(test::fake_device()).requires_grad_();
      value.requires_grad_();
    }
    const at::Tensor g = testing_inputs::normal(host.v.sizes(), 5);
    (kernel->run(host, parameters).out * g).sum().backward();
    calls = 0;
    (kernel->run(device, there).out * g.to(test::fake_device())).sum().backward();
    EXPECT_EQ(calls, 2);
    EXPECT_LT(relative_error(device.q.grad().cpu(), host.q.grad()), 1e-4);
    EXPECT_LT(relative_error(device.k.grad().cpu(), host.k.grad()), 1e-4);
    EXPECT_LT(relative_error(device.v.grad().cpu(), host.v.grad()), 1e-4);
    for (const auto& [name, value] : parameters)
      EXPECT_LT(relative_error(there.at(name).grad().cpu(), value.grad()), 1e-4) << name;
  }
}

} // namespace
} // namespace hydrascope
