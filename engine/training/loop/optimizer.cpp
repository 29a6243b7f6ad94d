#include "engine/training/loop/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include "engine/base/error.h"

namespace hydrascope::training {

Optimizer::Optimizer(NamedTensors parameters, const double weight_decay)
    : parameters_(std::move(parameters)), weight_decay_(weight_decay) {
  // The fused operation takes parameter, gradient and moments for equally laid out, and does not look.
  for (const auto& [name, parameter] : parameters_)
    TORCH_CHECK(parameter.is_contiguous(), name, " is not contiguous");
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters_)
    if (parameter.grad().defined()) all.push_back(parameter.grad());
  return all;
}

at::Tensor Optimizer::gradient_norms() const {
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> all = gradients();
  return all.empty() ? at::zeros({0}, at::kDouble) : at::stack(at::_foreach_norm(all)).to(at::kDouble);
}

void Optimizer::scale_gradients(const double factor) {
  const at::NoGradGuard no_gradients;
  if (const std::vector<at::Tensor> all = gradients(); !all.empty()) at::_foreach_mul_(all, factor);
}

void Optimizer::clear_gradients() {
  for (const auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

double Optimizer::step(const double learning_rate, const double clip_norm,
                       const std::span<const double> norms) {
  const at::NoGradGuard no_gradients;
  double squares = 0;
  for (const double norm : norms) squares += norm * norm;
  const double norm = std::sqrt(squares);
  if (std::isfinite(norm)) {
    if (clip_norm > 0 && norm > clip_norm) scale_gradients(clip_norm / norm);
    ++steps_;
    update(learning_rate, true);
    update(learning_rate, false);
  }
  clear_gradients();
  return norm;
}

void Optimizer::update(const double learning_rate, const bool matrices) {
  std::vector<at::Tensor> parameters, gradients, first, second, steps;
  for (const auto& [name, parameter] : parameters_) {
    if ((parameter.dim() >= 2) != matrices || !parameter.grad().defined()) continue;
    Moments& moments = moments_[name];
    if (!moments.first.defined())
      moments = {at::zeros_like(parameter), at::zeros_like(parameter),
                 at::full({}, static_cast<double>(steps_ - 1), parameter.options())};
    parameters.push_back(parameter);
    gradients.push_back(parameter.grad().contiguous());
    first.push_back(moments.first);
    second.push_back(moments.second);
    steps.push_back(moments.steps);
  }
  if (parameters.empty()) return;
  at::_foreach_add_(steps, 1); // the operation reads the number of the current step
  constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  at::_fused_adamw_(parameters, gradients, first, second, {}, steps, learning_rate, beta1, beta2,
                    matrices ? weight_decay_ : 0.0, epsilon, false, false);
}

NamedTensors Optimizer::state() const {
  NamedTensors result;
  for (const auto& [name, moments] : moments_) {
    result["first_moment." + name] = moments.first;
    result["second_moment." + name] = moments.second;
  }
  return result;
}

void Optimizer::restore(const NamedTensors& state, const std::int64_t steps, const std::string& subject) {
  steps_ = steps;
  for (const auto& [name, parameter] : parameters_) {
    const auto first = state.find("first_moment." + name);
    const auto second = state.find("second_moment." + name);
    // A parameter that never had a gradient has no moments.
    if (first == state.end() && second == state.end()) continue;
    if (first == state.end() || second == state.end() || first->second.sizes() != parameter.sizes() ||
        second->second.sizes() != parameter.sizes())
      throw BrokenFile(subject, "has no moments of the optimizer that fit " + name,
                       "start again without --resume");
    const at::Device device = parameter.device();
    moments_[name] = {first->second.to(device, at::kFloat, false, /*copy=*/true),
                      second->second.to(device, at::kFloat, false, /*copy=*/true),
                      at::full({}, static_cast<double>(steps), parameter.options())};
  }
}

double warmup_cosine(const double peak, const std::int64_t step, const std::int64_t warmup,
                     const std::int64_t steps) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double share =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
}

} // namespace hydrascope::training
