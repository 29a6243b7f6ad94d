#include "engine/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

// The one place that includes LibTorch's optimizers (they pull in most of its C++ API).
#include <torch/optim/adamw.h>

#include "engine/plain/error.h"

namespace hydrascope::training {

struct Optimizer::Implementation {
  NamedTensors parameters;
  std::unique_ptr<torch::optim::AdamW> adamw;
};

Optimizer::Optimizer(NamedTensors parameters, const double weight_decay)
    : implementation_(std::make_unique<Implementation>()) {
  std::vector<at::Tensor> matrices, others;
  for (const auto& [name, tensor] : parameters) (tensor.dim() >= 2 ? matrices : others).push_back(tensor);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](std::vector<at::Tensor> tensors, const double decay) {
    if (tensors.empty()) return;
    auto options = std::make_unique<torch::optim::AdamWOptions>();
    options->weight_decay(decay);
    groups.emplace_back(std::move(tensors), std::move(options));
  };
  add(std::move(matrices), weight_decay);
  add(std::move(others), 0.0);
  implementation_->parameters = std::move(parameters);
  implementation_->adamw = std::make_unique<torch::optim::AdamW>(groups);
}

Optimizer::~Optimizer() = default;

const NamedTensors& Optimizer::parameters() const { return implementation_->parameters; }

double Optimizer::step(const double learning_rate, const double clip_norm) {
  double squares = 0;
  for (const auto& [name, parameter] : implementation_->parameters) {
    if (!parameter.grad().defined()) continue;
    const double norm = parameter.grad().norm().item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (std::isfinite(norm)) {
    if (clip_norm > 0 && norm > clip_norm)
      for (const auto& [name, parameter] : implementation_->parameters)
        if (parameter.grad().defined()) parameter.mutable_grad().mul_(clip_norm / norm);
    for (auto& group : implementation_->adamw->param_groups()) group.options().set_lr(learning_rate);
    implementation_->adamw->step();
  }
  implementation_->adamw->zero_grad();
  return norm;
}

NamedTensors Optimizer::state() const {
  NamedTensors result;
  const auto& states = implementation_->adamw->state();
  for (const auto& [name, parameter] : implementation_->parameters) {
    const auto found = states.find(parameter.unsafeGetTensorImpl());
    if (found == states.end()) continue;
    const auto& moments = static_cast<const torch::optim::AdamWParamState&>(*found->second);
    result["first_moment." + name] = moments.exp_avg();
    result["second_moment." + name] = moments.exp_avg_sq();
  }
  return result;
}

void Optimizer::restore(const NamedTensors& state, const std::int64_t steps, const std::string& subject) {
  for (const auto& [name, parameter] : implementation_->parameters) {
    const auto first = state.find("first_moment." + name);
    const auto second = state.find("second_moment." + name);
    // A parameter that never had a gradient has no moments either.
    if (first == state.end() && second == state.end()) continue;
    if (first == state.end() || second == state.end() || first->second.sizes() != parameter.sizes() ||
        second->second.sizes() != parameter.sizes())
      throw BrokenFile(subject, "has no moments of the optimizer that fit " + name,
                       "start again without --resume");
    auto moments = std::make_unique<torch::optim::AdamWParamState>();
    moments->step(steps);
    moments->exp_avg(first->second.clone());
    moments->exp_avg_sq(second->second.clone());
    implementation_->adamw->state()[parameter.unsafeGetTensorImpl()] = std::move(moments);
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
