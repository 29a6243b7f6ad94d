#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"

namespace hydrascope {
namespace {

at::Tensor fuse_heads(const at::Tensor& weights, HeadFusion fusion) {
  switch (fusion) {
    case HeadFusion::min: return at::amin(weights, {1});
    case HeadFusion::max: return at::amax(weights, {1});
    case HeadFusion::mean: break;
  }
  return weights.mean(1);
}

} // namespace

at::Tensor rollout_factor(const at::Tensor& weights, std::int64_t first_row, HeadFusion fusion,
                          double discard) {
  if (!(discard >= 0 && discard < 1))
    throw UsageError("--discard", fmt::format("{} is not a share of each row", discard), "use 0 ≤ r < 1");
  constexpr double kTiny = 1e-30;
  // For a normalised kernel this divides by 1; for a signed one it is the documented |w| over the row sum.
  const at::Tensor magnitude = weights.to(at::kFloat).abs();
  at::Tensor fused = fuse_heads(magnitude / magnitude.sum(-1, true).clamp_min(kTiny), fusion);

  const std::int64_t tokens = fused.size(-1);
  const std::int64_t rows = fused.size(-2);
  const at::Tensor own_column =
      (at::arange(first_row, first_row + rows, fused.options().dtype(at::kLong))).unsqueeze(-1) ==
      at::arange(tokens, fused.options().dtype(at::kLong));
  const auto dropped = static_cast<std::int64_t>(std::floor(discard * static_cast<double>(tokens)));
  if (dropped > 0) {
    const at::Tensor lowest = std::get<1>(at::topk(fused, dropped, -1, /*largest=*/false));
    at::Tensor drop = at::zeros_like(fused, fused.options().dtype(at::kBool)).scatter_(-1, lowest, true);
    drop = drop & own_column.logical_not();
    drop.select(-1, 0).fill_(false);
    fused = fused.masked_fill(drop, 0.0);
  }
  const at::Tensor mixed = fused * 0.5 + own_column.to(at::kFloat) * 0.5;
  return mixed / mixed.sum(-1, true); // at least ½ on the diagonal: never 0
}

at::Tensor rollout(const std::vector<at::Tensor>& weights, HeadFusion fusion, double discard) {
  at::Tensor product;
  for (const at::Tensor& layer : weights) {
    const at::Tensor factor = rollout_factor(layer, 0, fusion, discard);
    product = product.defined() ? factor.matmul(product) : factor;
  }
  return product;
}

} // namespace hydrascope
