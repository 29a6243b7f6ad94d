#include "engine/attention/interface/device_check.h"

#include <exception>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <fmt/format.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

struct Check {
  const char* kernel = "";
  at::ScalarType type = at::kFloat;
  double tolerance = 0; // of the largest output
};

constexpr Check checks[] = {
    {"softmax", at::kFloat, 1e-3},  {"hydra-cosine", at::kFloat, 1e-3},    {"elu", at::kFloat, 1e-3},
    {"hedgehog", at::kFloat, 1e-3}, {"hydra-cosine", at::kBFloat16, 5e-2}, {"hedgehog", at::kBFloat16, 5e-2}};

// q, k and v of two sequences with three heads of 64 features; their number of tokens is no multiple of a
// kernel's tile.
AttentionInput example(const at::ScalarType type) {
  constexpr std::int64_t batch = 2, heads = 3, tokens = 77, width = 64;
  const at::Tensor steps = at::arange(batch * heads * tokens * width, at::kFloat);
  const auto wave = [&](const double frequency) {
    return at::sin(steps * frequency).view({batch, heads, tokens, width}).to(type);
  };
  AttentionInput input;
  input.q = wave(0.37);
  input.k = wave(0.53);
  input.v = wave(0.71);
  return input;
}

at::Tensor output_on(const c10::Device device, const Kernel& kernel, AttentionInput input) {
  KernelParameters parameters = kernel.initial_parameters({input.q.size(1), input.q.size(3)});
  for (auto& [name, parameter] : parameters) parameter = parameter.to(device);
  for (at::Tensor* const tensor : {&input.q, &input.k, &input.v}) *tensor = tensor->to(device);
  return kernel.run(input, parameters).out.to(at::kCPU, at::kFloat);
}

std::string why_wrong(const c10::Device device, const Check& check) {
  const auto kernel = make_kernel({check.kernel, {}});
  const AttentionInput input = example(check.type);
  const at::Tensor expected = output_on(c10::kCPU, *kernel, input);
  const double largest = expected.abs().max().item<double>();
  const double difference = (output_on(device, *kernel, input) - expected).abs().max().item<double>();
  if (difference <= check.tolerance * largest) return {}; // false for NaN, too
  return fmt::format("{} on {} differs from the CPU by {:.1e}, where the largest output is {:.1e}",
                     check.kernel, device.str(), difference, largest);
}

} // namespace

std::string why_wrong(const c10::Device device) {
  const at::NoGradGuard no_gradients;
  try {
    for (const Check& check : checks)
      if (std::string why = why_wrong(device, check); !why.empty()) return why;
  } catch (const std::exception& error) {
    return fmt::format("{} does not compute: {}", device.str(), first_line(error.what()));
  }
  return {};
}

} // namespace hydrascope
