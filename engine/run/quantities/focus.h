// The focus map: how much each token contributed to a target through one layer's attention (Hydra paper, Eq.
// 15–17).
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/run/reading.h"

namespace hydrascope {

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

// The same of a layer of a finished pass whose gradient a reading needed.
FocusMap focus_map_of(int layer, const FinishedPass& pass);

} // namespace hydrascope
