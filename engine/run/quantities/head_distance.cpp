#include "engine/run/quantities/head_distance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

namespace hydrascope {
namespace {

void accumulate(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) { // over rows and keys
  return (a * b).sum({2, 3}, false, at::kDouble);
}

} // namespace

at::Tensor jensen_shannon(const at::Tensor& weights, const at::Tensor& others) {
  const at::Tensor middle = (weights + others) * 0.5;
  // As entropies: H(m) − ½ H(p) − ½ H(q). 0 for equal rows, and no logarithm of 0.
  const at::Tensor terms =
      (at::xlogy(weights, weights) + at::xlogy(others, others)) * 0.5 - at::xlogy(middle, middle);
  return terms.sum({-1}, false, at::kDouble).clamp_min(0.0);
}

void HeadDistances::add(const at::Tensor& weights, const at::Tensor& chosen, const at::Tensor& real_rows) {
  if (metric_ == HeadMetric::jensen_shannon) {
    at::Tensor rows = jensen_shannon(weights, chosen);
    if (real_rows.defined()) rows = at::where(real_rows.to(at::kBool).unsqueeze(1), rows, 0.0);
    accumulate(sum_, rows.sum(-1));
    accumulate(rows_, real_rows.defined() ? real_rows.sum(1, true).to(at::kDouble)
                                          : at::full({weights.size(0), 1},
                                                     static_cast<double>(weights.size(2)), at::kDouble));
    return;
  }
  // Masked rows hold no weight, and so do not count.
  accumulate(products_, dot(weights, chosen));
  accumulate(own_, dot(weights, weights));
  accumulate(chosen_, dot(chosen, chosen));
}

at::Tensor HeadDistances::value() const {
  if (metric_ == HeadMetric::jensen_shannon) return sum_ / rows_;
  return (1.0 - products_ / (own_ * chosen_).sqrt()).clamp_min(0.0);
}

} // namespace hydrascope
