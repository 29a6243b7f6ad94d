// Low-rank updates of weights (LoRA; Hu et al. 2022, section 4.1).
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// Of a parameter NAME the factors are NAME.lora_A (r,in) and NAME.lora_B (out,r).
inline constexpr std::string_view low_rank_a = ".lora_A", low_rank_b = ".lora_B";

// W + (alpha / r)·B·A in float32, from W (out,in). Differentiable in the factors alone.
at::Tensor with_low_rank(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b, double alpha);

} // namespace hydrascope
