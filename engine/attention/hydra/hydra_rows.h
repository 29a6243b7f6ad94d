// φ(Q), φ(K) and V of a Hydra kernel as D-wide rows.
#pragma once

#include "engine/attention/hydra/hydra.h"

namespace hydrascope {

// Rows (B,N,D), masked rows 0.
struct HydraRows {
  at::Tensor query, key, value, mask;
  // A causal softmax over tokens whose keys differ so much that φ_K, which depends on the query, is no
  // product of one number of the query and one of the key. Then `key` holds the keys themselves, −∞ where
  // masked, φ_K(K)_j is e^(key_j − log_totals_i), and `sums` is Σ_{j≤i} φ_K(K)_j ⊙ V_j. Else undefined.
  at::Tensor log_totals, sums;

  // φ_K of the tokens j ≤ i as the query i sees it, (B,i+1,D).
  at::Tensor keys_of(std::int64_t query_row) const;
  // The same of all tokens for these queries (R) int64, 0 for later ones: (B,R,N,D). Where log_totals is
  // defined.
  at::Tensor keys_of(const at::Tensor& queries) const;
};
HydraRows hydra_rows(const HydraMaps& maps, const AttentionInput& input);

// φ of rows, masked ones 0; `scale` (… broadcast to them) or undefined.
at::Tensor mapped_rows(const RowMap& map, const at::Tensor& x, const at::Tensor& mask,
                       const at::Tensor& scale);

// 1/√T of each sequence, (B,1,1), T its number of real tokens.
at::Tensor root_of_mean(const at::Tensor& mask, std::int64_t tokens, const at::TensorOptions& options);
// 1/T_i, (B or 1,N,1), T_i the number of real tokens up to i; `before` others precede them.
at::Tensor running_mean(const at::Tensor& mask, std::int64_t tokens, const at::TensorOptions& options,
                        std::int64_t before = 0);

} // namespace hydrascope
