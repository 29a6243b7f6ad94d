// Measures of attention: functions of tensors without a run, each defined in the file of its quantity. B, H,
// N, d as in the kernels' interface, R query rows; entropies and divergences are in nats.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope {

// ---- entropy.cpp, kl.cpp, output_change.cpp ----

// Entropy −Σ p ln p of each row, averaged over real rows: weights (B,H,R,N), real rows (B,R) bool or
// undefined → (B,H). Rows should be distributions. Hedgehog paper, section 3.2.
at::Tensor entropy(const at::Tensor& weights, const at::Tensor& real_rows = {});

struct Divergence {
  at::Tensor kl; // (B,H), mean over real rows
  // How many entries are visible, and in how many of them either distribution is below the floor, over batch
  // and heads: float64, single numbers.
  at::Tensor entries, clamped;
};
// KL(softmax ‖ kernel) of each row with both distributions clamped from below at 1e-12 inside the logarithm,
// over real rows (B,R), bool or undefined = all, and what visible_keys() gives of them. Weights (B,H,R,N).
// Hedgehog paper, tables 4, 5, 14.
Divergence kl_divergence(const at::Tensor& softmax_weights, const at::Tensor& kernel_weights,
                         const at::Tensor& real_rows = {}, const at::Tensor& visible = {});

// Output change against softmax's output on the same q, k, v: (B,H,3) = ratio of norms, cosine, relative
// error. Outputs (B,H,N,d) with the rows of masked queries 0 in both. NaN where softmax's output is 0.
at::Tensor output_change(const at::Tensor& softmax_out, const at::Tensor& kernel_out);

// ---- focus_map.cpp ----

struct FocusMap {
  at::Tensor contributions;   // (N), signed, not normalised; sums to `total`
  double total = 0;           // out_c·g_c of query c; for all queries Σ_c out_c·g_c
  double share = 1;           // total / Σ_c out_c·g_c; NaN if that sum is 0 and total is not
  bool zero_gradient = false; // the shown queries cannot influence the target
};
// Contributions of each token to out_c·g_c of query c (nullopt: summed over all queries), heads summed. `out`
// and `g` (1,H,N,d) are the attention's output and the target's gradient there, before LayerNorm and W_o.
// Hydra paper, Eq. 15–17.
FocusMap focus_map(const Kernel& kernel, const AttentionInput& input, const KernelParameters& parameters,
                   const at::Tensor& out, const at::Tensor& g, std::optional<std::int64_t> query);

struct FinishedPass;
// The focus map of a layer of a finished pass; a reading must have needed the gradient of that layer.
FocusMap focus_map_of(int layer, const FinishedPass& pass);

// ---- rollout.cpp ----

// Attention rollout (Abnar & Zuidema 2020) of layers' weights, each (B,H,N,N): heads fused, the lowest share
// `discard` of each row set to 0 (never the class token's column or the diagonal), Ā = ½A + ½I with rows
// renormalised, Ā_L ⋯ Ā_1: (B,N,N). A signed layer enters as |w| over its row sum. Throws UsageError if
// `discard` is not in [0, 1).
at::Tensor rollout(const std::vector<at::Tensor>& weights, HeadFusion fusion = HeadFusion::mean,
                   double discard = 0.0);
// The factor Ā of one layer for a tile of query rows, so that no H×N×N weights need to exist at once: weights
// (B,H,R,N) of the query rows first_row … first_row+R−1 → (B,R,N).
at::Tensor rollout_factor(const at::Tensor& weights, std::int64_t first_row, HeadFusion fusion,
                          double discard);

// ---- weights.cpp ----

// ‖v_j W_o^h‖ for each token j and each of `heads` heads, (B,heads,N): v_j the head's value (w = D/heads
// features), W_o^h its w columns of `output_weight` (D,D), stored as (out,in). Times |α_ij| it is ‖α f(x)‖
// with f(x) = (x W_v + b_v) W_o of Kobayashi et al. 2020 ("Attention is not only a weight"), Eq. 4. 0 for
// masked tokens.
at::Tensor value_norms(const AttentionInput& input, const at::Tensor& output_weight, std::int64_t heads);

// ---- similar_heads.cpp ----

// The Jensen–Shannon divergence of each row, ½ KL(p ‖ m) + ½ KL(q ‖ m) with m = ½ (p + q), in nats: (B,H,R)
// from weights (B,H,R,N) and (B,h,R,N), h = H or 1. Rows must be distributions.
at::Tensor jensen_shannon(const at::Tensor& weights, const at::Tensor& others);

// The distances of heads to one chosen head, from weights in tiles of query rows.
class HeadDistances {
public:
  explicit HeadDistances(HeadMetric metric) : metric_(metric) {}

  // Weights (B,H,R,N) and the chosen head's (B,1,R,N) of the same rows; real rows (B,R) bool, undefined: all.
  void add(const at::Tensor& weights, const at::Tensor& chosen, const at::Tensor& real_rows = {});
  // (B,H) float64; NaN without a real row, and for the cosine of a head whose weights are all 0.
  at::Tensor value() const;

private:
  HeadMetric metric_;
  at::Tensor sum_, rows_;              // Jensen–Shannon: (B,H), (B,1)
  at::Tensor products_, own_, chosen_; // cosine: (B,H), (B,H), (B,1)
};

// ---- monotonicity.cpp ----

// q·k/√d of the query rows `rows` (int64 (R), undefined: all), computed as softmax computes it: (B,h,R,N)
// float32 (float64 if q is). `heads` = h splits the same D features into another number of heads, 0 = the
// input's. Masked tokens count as 0. Throws UsageError as the kernels do for an input of wrong shapes.
at::Tensor attention_scores(const AttentionInput& input, const at::Tensor& rows = {}, std::int64_t heads = 0);

// The keys that each of these query rows attends to: (B,1,R,N) bool, undefined if every row attends to every
// key. A masked query attends to none; a causal one to no later key.
at::Tensor visible_keys(const AttentionInput& input, const at::Tensor& rows = {});

// Each row's visible entries by rank; ties share their mean rank. Rows are sorted on the CPU, where the
// tensors lie.
struct RankedRows {
  at::Tensor ranks;   // (B,H,R,N) float32, relative to the row's mean rank; 0 where not visible
  at::Tensor spread;  // (B,H,R) float64, sum of the squared ranks: 0 for a constant row
  at::Tensor visible; // (B,1,R,N) bool or undefined
  at::Tensor counted; // (B,1,R) bool, rows of at least three visible entries: others have no ρ
};
RankedRows rank_rows(const at::Tensor& values, const at::Tensor& visible = {});

// Spearman's ρ of each row of weights (B,H,R,N) with ranked scores of the same shape: (B,H,R) float64, on the
// CPU. 0 for a row that is constant in either or that is not counted; NaN where either holds NaN.
at::Tensor rank_correlation(const at::Tensor& weights, const RankedRows& scores);

// Spearman's ρ of weights and scores (B,H,R,N), mean over the rows that count: (B,H) float64, NaN without
// such a row. 1 for softmax's own weights. Hedgehog paper, section 3.2, Fig. 3 and 5.
at::Tensor monotonicity(const at::Tensor& weights, const at::Tensor& scores, const at::Tensor& visible = {});

// The range of visible scores (B,H,R,N), and the share of them below −1, where 1 + s + s²/2 (taylor) falls:
// (B,H) float64 each; NaN if nothing is visible.
struct ScoreRange {
  at::Tensor smallest, largest, share_below;
};
ScoreRange score_range(const at::Tensor& scores, const at::Tensor& visible = {});
// The same of a layer's q and k, in tiles of rows.
ScoreRange score_range(const AttentionInput& input);

} // namespace hydrascope
