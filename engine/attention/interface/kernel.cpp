#include "engine/attention/interface/kernel.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

void require(const Support& support, const KernelSpec& spec) {
  if (!support.ok) throw UsageError(spec.text(), support.reason, "choose another kernel or other parameters");
}

void require_device(const KernelParameters& parameters, const at::Device device) {
  for (const auto& [name, parameter] : parameters)
    if (parameter.defined() && parameter.device() != device)
      throw UsageError(name,
                       fmt::format("lies on {} where q lies on {}", parameter.device().str(), device.str()),
                       "move the kernel's parameters to its input's device");
}

} // namespace

AttentionShape shape_of(const AttentionInput& input, const KernelParameters& parameters) {
  return {.batch = input.q.size(0),
          .heads = input.q.size(1),
          .tokens = input.q.size(2),
          .head_width = input.q.size(3),
          .dtype = input.q.scalar_type(),
          .device = input.q.device().type(),
          .device_index = input.q.device().index(),
          .has_layer_input = input.layer_input.defined(),
          .has_mask = input.mask.defined(),
          .causal = input.causal,
          .gradients = needs_gradient(input, parameters),
          .key_heads = input.key_heads,
          .layout = input.layout,
          .queries = input.queries};
}

const char* path_name(const Path path) {
  switch (path) {
    case Path::in_blocks:
    case Path::at_once: return "composed";
    case Path::fused_cpu: return "fused cpu";
    case Path::fused_cuda:
    case Path::fused_cuda_training: return "fused cuda";
    case Path::sdpa: return "LibTorch sdpa";
  }
  return "";
}

const KernelInfo& Kernel::info() const { return kernel_info(spec_); }

std::int64_t Kernel::weight_heads(const AttentionShape& shape) const { return shape.heads; }

KernelParameters Kernel::initial_parameters(const HeadShape&, int) const { return {}; }

at::Tensor Kernel::finish(const at::Tensor& out, const at::Tensor&, const KernelParameters&) const {
  return out;
}

std::optional<GlobalVector> Kernel::global_vector(const AttentionInput&, const KernelParameters&,
                                                  const at::Tensor&) const {
  return std::nullopt;
}

void Kernel::require_support(const AttentionInput& input) const {
  check_input(input);
  require(supports(shape_of(input)), spec_);
}

AttentionOutput Kernel::run(const AttentionInput& input, const KernelParameters& parameters) const {
  check_input(input);
  const Plan planned = plan(shape_of(input, parameters));
  require(planned.support, spec_);
  require_device(parameters, input.q.device());
  AttentionOutput output = compute(planned.path, input, parameters);
  if (output.path.empty()) output.path = path_name(planned.path);
  return output;
}

at::Tensor Kernel::contributions(const AttentionInput& input, const KernelParameters& parameters,
                                 std::optional<std::int64_t> query, const at::Tensor& g) const {
  const at::NoGradGuard no_gradients;
  check_input(input);
  const at::Tensor mask = real_mask(input);
  const at::ScalarType type = compute_type(input.q.scalar_type());
  const std::int64_t tokens = input.q.size(2), heads = weight_heads(shape_of(input));
  const at::Tensor v = resplit(select_tokens(input.v.to(type), mask), heads);
  if (query) {
    const at::Tensor row = at::arange(*query, *query + 1, v.options().dtype(at::kLong));
    const at::Tensor w = weights(input, parameters, row).squeeze(2); // (B,h,N)
    const at::Tensor g_heads = select_tokens(resplit(g.to(type).unsqueeze(2), heads), take_mask(mask, row));
    return (w * at::matmul(v, g_heads.transpose(2, 3)).squeeze(3)).sum(1);
  }
  const at::Tensor g_heads = resplit(select_tokens(g.to(type), mask), heads);
  at::Tensor gathered = at::zeros(v.sizes(), v.options()); // Σ_c w_ct g_c
  const std::int64_t step = tile_rows(v.size(0) * heads, tokens);
  for (std::int64_t first = 0; first < tokens; first += step) {
    const std::int64_t last = std::min(tokens, first + step);
    const at::Tensor w = weights(input, parameters, at::arange(first, last, v.options().dtype(at::kLong)));
    gathered += at::matmul(w.transpose(2, 3), g_heads.slice(2, first, last));
  }
  return (gathered * v).sum(3).sum(1);
}

double Kernel::weights_check(const AttentionInput& input, const KernelParameters& parameters,
                             const at::Tensor& rows) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor mask = real_mask(input);
  const at::Tensor out = take_tokens(run(input, parameters).out, rows);
  const at::Tensor w = weights(input, parameters, rows);
  const at::Tensor v = resplit(select_tokens(input.v.to(w.scalar_type()), mask), w.size(1));
  const at::Tensor product = resplit(at::matmul(w, v), input.q.size(1));
  return (product - out.to(w.scalar_type())).abs().max().item<double>();
}

std::optional<Features> features_of(const Kernel& kernel, const AttentionInput& input,
                                    const KernelParameters& parameters, const at::Tensor& query_rows,
                                    const at::Tensor& key_rows) {
  const auto* const mapped = dynamic_cast<const FeatureKernel*>(&kernel);
  if (mapped == nullptr || !mapped->has_features()) return std::nullopt;
  const at::NoGradGuard no_gradients;
  return mapped->features(input, parameters, query_rows, key_rows);
}

} // namespace hydrascope
