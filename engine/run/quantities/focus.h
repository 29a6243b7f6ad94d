// The focus map: how much each token contributed to a target through one layer's attention (Hydra paper, Eq.
// 15–17).
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// Targets: scalars whose gradient is taken. `hidden` (1,N,D) is the last hidden state, `mask` (1,N) bool or
// undefined.

// Mean over real tokens: (1,D).
at::Tensor mean_pooled(const at::Tensor& hidden, const at::Tensor& mask = {});
// ½‖mean-pooled embedding‖².
at::Tensor norm_target(const at::Tensor& hidden, const at::Tensor& mask = {});
// Cosine similarity with another sentence's mean-pooled embedding (1,D), which is a constant.
at::Tensor similarity_target(const at::Tensor& hidden, const at::Tensor& mask, const at::Tensor& other);
// One logit of (1,C).
at::Tensor class_target(const at::Tensor& logits, std::int64_t index);

// ∂target/∂each of `points`, zeros where the target does not depend on one. Frees the graph.
std::vector<at::Tensor> gradients_at(const at::Tensor& target, const std::vector<at::Tensor>& points);

// Whether a target depends on token 0 of the last hidden state alone, by the gradient there (1,N,D).
bool reads_first_token_alone(const at::Tensor& gradient_at_last_hidden);

struct FocusMap {
  at::Tensor contributions; // (N), signed, not normalised: Σ_t = total
  double total = 0;         // out_c·g_c, for all queries Σ_c out_c·g_c
  double share = 1; // of Σ_c out_c·g_c that the shown query carries; NaN if that sum is 0 and total is not
  bool zero_gradient = false; // the shown queries cannot influence the target
};

// Contributions of each token to out_c·g_c of query c (nullopt: summed over all queries), heads summed. `out`
// and `g` (1,H,N,d) are the attention's output and the target's gradient there, before LayerNorm and W_o.
FocusMap focus_map(const Kernel& kernel, const AttentionInput& input, const KernelParameters& parameters,
                   const at::Tensor& out, const at::Tensor& g, std::optional<std::int64_t> query);

} // namespace hydrascope
