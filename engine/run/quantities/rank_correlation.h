// How far a kernel's weights follow the order of softmax's logits (Hedgehog paper, section 3.2, Fig. 3 and
// 5).
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// q·k/√d of the query rows asked for (int64 (R), undefined: all), formed as softmax forms it: (B,h,R,N)
// float32 (float64 where q is). `heads` = h cuts the same D features into another number of heads, 0 = the
// input's. Masked tokens count as 0. Throws UsageError as the kernels do for an input of wrong shapes.
at::Tensor attention_scores(const AttentionInput& input, const at::Tensor& rows = {}, std::int64_t heads = 0);

// Which keys each of these query rows sees: (B,1,R,N) bool, undefined where every row sees every key. A
// masked query sees none; a causal one no later key.
at::Tensor visible_keys(const AttentionInput& input, const at::Tensor& rows = {});

// Each row's visible entries by rank; ties share their mean rank.
struct RankedRows {
  at::Tensor ranks;   // (B,H,R,N) float32, counted from the row's mean rank; 0 where not visible
  at::Tensor spread;  // (B,H,R) float64, sum of the squared ranks: 0 for a constant row
  at::Tensor visible; // (B,1,R,N) bool or undefined
  at::Tensor counted; // (B,1,R) bool, rows of at least three visible entries: the others have no ρ
};
RankedRows rank_rows(const at::Tensor& values, const at::Tensor& visible = {});

// Spearman's ρ of each row of weights (B,H,R,N) with ranked scores of the same shape: (B,H,R) float64. 0 for
// a row that is constant in either and for one that does not count; NaN where either holds NaN.
at::Tensor rank_correlation(const at::Tensor& weights, const RankedRows& scores);

// Spearman's ρ of weights and scores (B,H,R,N), mean over the rows that count: (B,H) float64, NaN where there
// is no such row. 1 for softmax's own weights.
at::Tensor monotonicity(const at::Tensor& weights, const at::Tensor& scores, const at::Tensor& visible = {});

// The range of visible scores (B,H,R,N), and the share of them below −1, where 1 + s + s²/2 (taylor) falls:
// (B,H) float64 each; NaN where nothing is visible.
struct ScoreRange {
  at::Tensor smallest, largest, share_below;
};
ScoreRange score_range(const at::Tensor& scores, const at::Tensor& visible = {});
// The same of a layer's q and k, in tiles of rows.
ScoreRange score_range(const AttentionInput& input);

} // namespace hydrascope
