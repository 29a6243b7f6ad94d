// How alike heads are, from their weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/run/quantities/head_metric.h"

namespace hydrascope {

// The Jensen–Shannon divergence of each row, ½ KL(p ‖ m) + ½ KL(q ‖ m) with m = ½ (p + q), in nats: (B,H,R)
// from weights (B,H,R,N) and (B,h,R,N), h = H or 1. Rows must be distributions.
at::Tensor jensen_shannon(const at::Tensor& weights, const at::Tensor& others);

// The distances of heads to one chosen head, over weights that come in tiles of query rows.
class HeadDistances {
public:
  explicit HeadDistances(HeadMetric metric) : metric_(metric) {}

  // Weights (B,H,R,N) and the chosen head's (B,1,R,N) of the same rows; real rows (B,R) bool, undefined: all.
  void add(const at::Tensor& weights, const at::Tensor& chosen, const at::Tensor& real_rows = {});
  // (B,H) float64; NaN where there was no real row, or a head without any weight has no angle.
  at::Tensor value() const;

private:
  HeadMetric metric_;
  at::Tensor sum_, rows_;              // Jensen–Shannon: (B,H), (B,1)
  at::Tensor products_, own_, chosen_; // cosine: (B,H), (B,H), (B,1)
};

} // namespace hydrascope
