// What a weight carries: the length of the vector that it lets through.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// ‖v_j W_o^h‖ for each token j and each of `heads` heads, (B,heads,N): v_j the head's value (w = D/heads
// features), W_o^h its w columns of `output_weight` (D,D), stored as (out,in). Times |α_ij| it is Kobayashi
// et al. 2020 ("Attention is not only a weight"), equation 4: ‖α f(x)‖ with f(x) = (x W_v + b_v) W_o. 0 for
// masked tokens.
at::Tensor value_norms(const AttentionInput& input, const at::Tensor& output_weight, std::int64_t heads);

} // namespace hydrascope
