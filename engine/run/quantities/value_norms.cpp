#include "engine/run/quantities/value_norms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>

#include "engine/attention/interface/tokens.h"

namespace hydrascope {

at::Tensor value_norms(const AttentionInput& input, const at::Tensor& output_weight, std::int64_t heads) {
  const at::Tensor v = resplit(select_tokens(input.v.to(at::kFloat), real_mask(input)), heads);
  const std::int64_t width = output_weight.size(1);
  // ‖v W‖² = v (W Wᵀ) vᵀ: a w×w matrix of each head instead of D numbers of each token and head.
  const at::Tensor columns =
      output_weight.to(at::kFloat).t().reshape({heads, width / heads, output_weight.size(0)});
  const at::Tensor gram = at::matmul(columns, columns.transpose(1, 2)); // (heads,w,w)
  return (at::matmul(v, gram.unsqueeze(0)) * v).sum(-1).clamp_min(0.0).sqrt();
}

} // namespace hydrascope
