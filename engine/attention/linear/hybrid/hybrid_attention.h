// Softmax over near keys and linear attention over the others, under one denominator (Zhang et al., LoLCATs,
// 2024, Eq. 6; Arora et al., Based, 2024):
//   out_i = (Σ_{j∈W_i} e^{s_ij} v_j + Σ_{j∉W_i} φ(q_i)·φ(k_j) v_j) / (Σ_{j∈W_i} e^{s_ij} + Σ_{j∉W_i}
//   φ(q_i)·φ(k_j)),
// s_ij = q_i·k_j/√d. Both sums are computed relative to the larger of their largest terms, so that inputs of
// any size give the exact quotient. The window W_i holds, of decoders, the last w tokens up to i; of encoders
// the w tokens from clamp(i − ⌊w/2⌋, 0, T − w), where masked tokens do not count. Images are taken in the
// order of their tokens.
#pragma once

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// The registry's entry of such a kernel; `window`: the default of its parameter w.
RegistryEntry hybrid_attention(KernelInfo info, MakeFeatureMap make_map, std::int64_t window);

} // namespace hydrascope
