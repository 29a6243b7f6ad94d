#include "engine/run/quantities/focus.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace hydrascope {

at::Tensor mean_pooled(const at::Tensor& hidden, const at::Tensor& mask) {
  if (!mask.defined()) return hidden.mean(1);
  const at::Tensor real = mask.to(at::kBool).unsqueeze(-1);
  const at::Tensor kept = at::where(real, hidden, at::zeros({}, hidden.options()));
  return kept.sum(1) / real.sum(1).clamp_min(1);
}

at::Tensor norm_target(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::Tensor pooled = mean_pooled(hidden, mask);
  return (pooled * pooled).sum() * 0.5;
}

at::Tensor similarity_target(const at::Tensor& hidden, const at::Tensor& mask, const at::Tensor& other) {
  const at::Tensor pooled = mean_pooled(hidden, mask);
  constexpr double kTiny = 1e-12;
  const at::Tensor constant = other.detach();
  const at::Tensor direction = constant / constant.norm().clamp_min(kTiny);
  return (pooled * direction).sum() / pooled.norm().clamp_min(kTiny);
}

at::Tensor class_target(const at::Tensor& logits, std::int64_t index) {
  return logits.select(0, 0).select(0, index);
}

bool reads_first_token_alone(const at::Tensor& gradient_at_last_hidden) {
  const at::NoGradGuard no_grad;
  const at::Tensor others = gradient_at_last_hidden.slice(1, 1);
  return others.numel() == 0 || !others.ne(0).any().item<bool>();
}

FocusMap focus_map(const Kernel& kernel, const AttentionInput& input, const KernelParameters& parameters,
                   const at::Tensor& out, const at::Tensor& g, std::optional<std::int64_t> query) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = g.detach().to(at::kFloat);
  // (N): out_c·g_c of every query, heads summed.
  const at::Tensor carried =
      (out.detach().to(at::kDouble) * gradient.to(at::kDouble)).sum({0, 1, 3}, false, at::kDouble);
  const double everything = carried.sum().item<double>();

  FocusMap map;
  const at::Tensor shown = query ? gradient.select(2, *query) : gradient;
  map.total = query ? carried[*query].item<double>() : everything;
  if (query && map.total != everything)
    map.share = everything != 0 ? map.total / everything : std::numeric_limits<double>::quiet_NaN();
  map.zero_gradient = !shown.ne(0).any().item<bool>();
  map.contributions = kernel.contributions(input, parameters, query, shown).select(0, 0).to(at::kFloat);
  return map;
}

} // namespace hydrascope
