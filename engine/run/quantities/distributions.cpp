#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

#include "engine/run/quantities/measures.h"

namespace hydrascope {
namespace {

constexpr double kFloor = 1e-12;

// (B,H,R) → (B,H): the mean over real rows. Sums in double, so that long texts lose nothing.
at::Tensor mean_over_rows(const at::Tensor& values, const at::Tensor& real_rows) {
  if (!real_rows.defined()) return values.mean(-1, false, at::kDouble);
  const at::Tensor real = real_rows.to(at::kBool).unsqueeze(1);
  // A masked row may hold anything, NaN included: select, do not multiply.
  const at::Tensor kept = at::where(real, values.to(at::kDouble), 0.0);
  return kept.sum(-1) / real.sum(-1);
}

} // namespace

at::Tensor entropy(const at::Tensor& weights, const at::Tensor& real_rows) {
  const at::Tensor rows = at::xlogy(weights, weights).neg().sum({-1}, false, at::kDouble);
  return mean_over_rows(rows, real_rows);
}

Divergence kl_divergence(const at::Tensor& softmax_weights, const at::Tensor& kernel_weights,
                         const at::Tensor& real_rows, const at::Tensor& real_keys) {
  const at::Tensor ratio = softmax_weights.clamp_min(kFloor).log() - kernel_weights.clamp_min(kFloor).log();
  at::Tensor terms = softmax_weights * ratio;
  at::Tensor clamped = at::logical_or(softmax_weights < kFloor, kernel_weights < kFloor);
  if (real_keys.defined()) {
    const at::Tensor real = real_keys.to(at::kBool).unsqueeze(1).unsqueeze(1);
    terms = at::where(real, terms, 0.0);
    clamped = clamped & real;
  }
  Divergence divergence;
  divergence.kl = mean_over_rows(terms.sum({-1}, false, at::kDouble), real_rows);

  const auto heads = static_cast<double>(softmax_weights.size(1));
  const auto batch = softmax_weights.size(0);
  const at::Tensor rows =
      real_rows.defined() ? real_rows.to(at::kBool).sum(-1)
                          : at::full({batch}, softmax_weights.size(2), clamped.options().dtype(at::kLong));
  const at::Tensor keys =
      real_keys.defined() ? real_keys.to(at::kBool).sum(-1)
                          : at::full({batch}, softmax_weights.size(3), clamped.options().dtype(at::kLong));
  if (real_rows.defined()) clamped = clamped & real_rows.to(at::kBool).unsqueeze(1).unsqueeze(-1);
  const double entries = heads * (rows * keys).sum().item<double>();
  divergence.clamped_share = entries > 0 ? clamped.sum().item<double>() / entries : 0.0;
  return divergence;
}

} // namespace hydrascope
