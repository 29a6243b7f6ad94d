#include "engine/training/tasks/distillation_loss.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/masked_fill.h>

namespace hydrascope::training {
namespace {

// The floor of weights inside logarithms, as in kernels.md for the divergence.
constexpr double smallest_weight = 1e-12;

// Some rows of some items of the batch, with the keys that they attend to.
struct LossPart {
  AttentionInput input;
  at::Tensor rows; // undefined: all
};

struct PartResult {
  DistillationLoss loss;
  KernelParameters gradients; // empty without gradients
};

PartResult loss_of(const LossPart& part, const Kernel& softmax, const Kernel& kernel,
                   const KernelParameters& parameters, const double all_rows) {
  PartResult result;
  KernelParameters own; // so that parts that run at the same time add to no common gradient
  at::Tensor weights;
  {
    const at::AutoGradMode needed(all_rows > 0);
    for (const auto& [name, value] : parameters) own[name] = value.detach().requires_grad_(all_rows > 0);
    weights = kernel.weights(part.input, own, part.rows);
  }
  const at::NoGradGuard no_gradients;
  const at::Tensor target = softmax.weights(part.input, {}, part.rows);
  at::Tensor floored = weights.detach().clamp_min(smallest_weight);
  if (all_rows > 0 && weights.requires_grad()) {
    // −p/w for softmax's weight p and the kernel's w.
    at::Tensor gradient = target / (floored * -all_rows);
    weights.backward(gradient.masked_fill_(weights.detach() < smallest_weight, 0));
    for (const auto& [name, value] : own)
      if (value.grad().defined()) result.gradients[name] = value.grad();
  }
  // Rows of padding are 0 in `target` and add nothing.
  const auto over_rows = [](const at::Tensor& product) { return product.sum({0, 2, 3}).neg_(); };
  result.loss = {over_rows(floored.log_().mul_(target)),
                 over_rows(target.clamp_min(smallest_weight).log_().mul_(target))};
  return result;
}

// The items [begin, end) of the batch, and of their tokens the first `tokens`: to the rows of causal
// attention up to there, later tokens do not matter.
AttentionInput part_of(const AttentionInput& whole, const std::int64_t begin, const std::int64_t end,
                       const std::int64_t tokens) {
  AttentionInput part = whole;
  for (at::Tensor* x : {&part.q, &part.k, &part.v}) *x = x->slice(0, begin, end).slice(2, 0, tokens);
  for (at::Tensor* x : {&part.layer_input, &part.mask})
    if (x->defined()) *x = x->slice(0, begin, end).slice(1, 0, tokens);
  return part;
}

// Causal rows in tiles with the keys up to them: half of the weights are 0, and the rest stays in the cache.
// The longest come first, so that no thread begins one when the others have ended.
std::vector<LossPart> parts_of(const AttentionInput& input) {
  constexpr std::int64_t tile = 64;
  const auto options = input.q.options().dtype(at::kLong);
  if (!input.q.is_cpu())
    return {{input, input.queries > 0 ? at::arange(input.queries, options) : at::Tensor()}};
  const std::int64_t batch = input.q.size(0), tokens = input.q.size(2);
  const std::int64_t shares = std::min<std::int64_t>(batch, at::get_num_threads());
  const std::int64_t rows = input.queries > 0 ? input.queries : tokens;
  std::vector<LossPart> parts;
  for (std::int64_t last = rows; last > 0; last = input.causal ? (last - 1) / tile * tile : 0) {
    const std::int64_t first = input.causal ? (last - 1) / tile * tile : 0;
    for (std::int64_t share = 0; share < shares; ++share)
      parts.push_back(
          {part_of(input, share * batch / shares, (share + 1) * batch / shares, input.causal ? last : tokens),
           first == 0 && last == tokens ? at::Tensor() : at::arange(first, last, options)});
  }
  return parts;
}

} // namespace

DistillationLoss distillation_loss(const AttentionInput& input, const Kernel& softmax, const Kernel& kernel,
                                   const KernelParameters& parameters, const double all_rows) {
  const std::vector<LossPart> parts = parts_of(input);
  std::vector<PartResult> results(parts.size());
  std::atomic<std::size_t> next = 0;
  const auto workers = std::min<std::int64_t>(at::get_num_threads(), std::ssize(parts));
  at::parallel_for(0, workers, 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i = next++; i < parts.size(); i = next++)
      results[i] = loss_of(parts[i], softmax, kernel, parameters, all_rows);
  });
  // In the order of the parts, whichever thread had them: the same numbers every time.
  DistillationLoss sum = results.front().loss;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i > 0) {
      sum.cross_entropy += results[i].loss.cross_entropy;
      sum.entropy += results[i].loss.entropy;
    }
    for (const auto& [name, gradient] : results[i].gradients) {
      at::Tensor& whole = parameters.at(name).mutable_grad();
      whole = whole.defined() ? whole.add_(gradient) : gradient;
    }
  }
  return sum;
}

} // namespace hydrascope::training
