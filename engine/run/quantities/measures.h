// What is read off attention weights: pure functions of tensors. Units: nats.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/run/quantities/head_fusion.h"

namespace hydrascope {

// Entropy −Σ p ln p of each row, averaged over real rows: weights (B,H,R,N), real rows (B,R) bool or
// undefined → (B,H). Hedgehog paper, section 3.2. Meant for rows that are distributions.
at::Tensor entropy(const at::Tensor& weights, const at::Tensor& real_rows = {});

struct Divergence {
  at::Tensor kl;            // (B,H), mean over real rows
  double clamped_share = 0; // share of real entries where either distribution is below the floor
};
// KL(softmax ‖ kernel) of each row with both distributions clamped from below at 1e-12 inside the logarithm,
// over real rows (B,R) and real keys (B,N), each bool or undefined = all. Weights (B,H,R,N). Hedgehog paper,
// tables 4, 5, 14.
Divergence kl_divergence(const at::Tensor& softmax_weights, const at::Tensor& kernel_weights,
                         const at::Tensor& real_rows = {}, const at::Tensor& real_keys = {});

// Output change against softmax's output on the same q, k, v: (B,H,3) = ratio of norms, cosine, relative
// error. (B,H,N,d) each, the rows of masked queries 0 in both. Where softmax's output is 0 there is nothing
// to compare with: NaN.
at::Tensor output_change(const at::Tensor& softmax_out, const at::Tensor& kernel_out);

// Attention rollout (Abnar & Zuidema 2020) of layers' weights, each (B,H,N,N): heads fused, the lowest share
// `discard` of each row set to 0 (never the class token's column or the diagonal), Ā = ½A + ½I with rows
// renormalised, Ā_L ⋯ Ā_1: (B,N,N). A signed layer enters as |w| over its row sum. Throws UsageError if
// `discard` is not in [0, 1).
at::Tensor rollout(const std::vector<at::Tensor>& weights, HeadFusion fusion = HeadFusion::mean,
                   double discard = 0.0);

// The factor Ā of one layer for a tile of query rows, so that H×N×N weights need never exist at once:
// weights (B,H,R,N) of the query rows first_row … first_row+R−1 → (B,R,N).
at::Tensor rollout_factor(const at::Tensor& weights, std::int64_t first_row, HeadFusion fusion,
                          double discard);

} // namespace hydrascope
