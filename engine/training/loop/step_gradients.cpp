#include "engine/training/loop/step_gradients.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include "engine/attention/interface/remedies.h"
#include "engine/run/placement.h"
#include "engine/training/distributed/process_group.h"

namespace hydrascope::training {
namespace {

// As torch.amp.GradScaler has them.
constexpr double first_loss_scale = 65536;
constexpr std::int64_t steps_before_larger_scale = 2000;

// The numbers of a tensor; waits for its device.
std::vector<double> numbers_of(const at::Tensor& values) {
  const at::Tensor read = values.to(at::kCPU, at::kDouble).contiguous();
  return {read.const_data_ptr<double>(), read.const_data_ptr<double>() + read.numel()};
}

bool overflows(const StepNumbers& numbers) {
  return std::isfinite(numbers.shown.front()) &&
         !std::ranges::all_of(numbers.norms, [](const double norm) { return std::isfinite(norm); });
}

} // namespace

StepGradients::StepGradients(TrainingTask& task, Optimizer& optimizer, ProcessGroup* const group,
                             std::stop_token stop)
    : task_(task), optimizer_(optimizer), group_(group), stop_(std::move(stop)) {}

StepNumbers StepGradients::compute(const std::int64_t step, LossScale& scale) {
  if (!task_.scales_loss()) return scaled(step, 1);
  if (scale.factor == 0) scale.factor = first_loss_scale;
  StepNumbers numbers = scaled(step, scale.factor);
  // All processes see the same norms.
  while (scale.factor > 1 && overflows(numbers)) {
    scale = {scale.factor / 2, 0};
    optimizer_.clear_gradients();
    numbers = scaled(step, scale.factor);
  }
  if (++scale.steps == steps_before_larger_scale) scale = {scale.factor * 2, 0};
  return numbers;
}

StepNumbers StepGradients::scaled(const std::int64_t step, const double scale) {
  const at::Tensor shown = within_memory(step, scale);
  StepNumbers numbers;
  if (group_ != nullptr) {
    numbers.shown = numbers_of(shown);
    combine(numbers.shown);
  }
  if (scale != 1) optimizer_.scale_gradients(1 / scale);
  const at::Tensor norms = optimizer_.gradient_norms();
  if (group_ != nullptr) {
    numbers.norms = numbers_of(norms);
    return numbers;
  }
  const std::vector<double> both = numbers_of(at::cat({shown, norms}));
  const auto border = both.begin() + static_cast<std::ptrdiff_t>(shown.numel());
  return {{both.begin(), border}, {border, both.end()}};
}

at::Tensor StepGradients::within_memory(const std::int64_t step, const double scale) {
  try {
    return task_.loss(step, Gradients(scale));
  } catch (const c10::Error&) {
    const c10::Device device = task_.leaves().begin()->second.device();
    if (caught_failure(device.str()).kind != Failure::Kind::device_memory) throw;
    optimizer_.clear_gradients();
    release_cached_memory(device);
    return task_.loss(step, Gradients(scale));
  }
}

// Sums the shown values and the gradients over the processes.
void StepGradients::combine(std::vector<double>& shown) {
  shown.push_back(stop_.stop_requested() ? 1 : 0);
  for (const auto& [name, leaf] : task_.leaves()) shown.push_back(leaf.grad().defined() ? 1 : 0);
  group_->sum(std::span(shown));
  auto has_gradient = shown.end() - static_cast<std::ptrdiff_t>(task_.leaves().size());
  agreed_to_stop_ = *(has_gradient - 1) > 0;
  std::vector<at::Tensor> gradients;
  for (const auto& [name, leaf] : task_.leaves()) {
    if (*has_gradient++ == 0) continue;
    if (!leaf.grad().defined()) leaf.mutable_grad() = at::zeros_like(leaf);
    gradients.push_back(leaf.grad());
  }
  shown.resize(shown.size() - task_.leaves().size() - 1);
  group_->sum(gradients);
}

} // namespace hydrascope::training
