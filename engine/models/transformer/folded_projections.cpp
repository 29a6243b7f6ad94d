#include "engine/models/transformer/folded_projections.h"

#include <algorithm>
#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

namespace hydrascope {
namespace {

// The projection x·W_pᵀ + b_p followed, head by head, by y = x·W + b; weight (H,d,d), bias (H,d) or
// undefined.
Linear::Part followed_by(const Linear::Part& projection, const at::Tensor& weight, const at::Tensor& bias) {
  const std::int64_t heads = weight.size(0), width = weight.size(1), in = projection.weight.size(1);
  const auto own = [](const at::Tensor& x) { return x.detach().to(at::kDouble); };
  const at::Tensor map = own(weight);
  Linear::Part result;
  result.weight = at::matmul(map.transpose(1, 2), own(projection.weight).view({heads, width, in}))
                      .reshape({heads * width, in})
                      .to(projection.weight.options());
  at::Tensor sum;
  if (projection.bias.defined())
    sum = at::matmul(own(projection.bias).view({heads, 1, width}), map).view({heads * width});
  if (bias.defined()) sum = sum.defined() ? sum + own(bias).reshape(-1) : own(bias).reshape(-1);
  if (sum.defined()) result.bias = sum.to(projection.weight.options());
  return result;
}

// Changes when a tensor is written in place.
std::uint32_t version(const at::Tensor& x) {
  return x.defined() && !x.is_inference() ? static_cast<std::uint32_t>(x._version()) : 0;
}

} // namespace

std::shared_ptr<const FoldedProjection> FoldedProjections::of(const Linear& qkv, const Kernel& kernel,
                                                              const KernelParameters& parameters,
                                                              const std::int64_t heads) const {
  const Linear::Part &query = qkv.parts()[0], &key = qkv.parts()[1], &value = qkv.parts()[2];
  auto maps = kernel.leading_maps(heads, query.weight.size(0) / heads, parameters);
  if (!maps) return nullptr;
  const std::array now{maps->query_weight, maps->query_bias, maps->key_weight, maps->key_bias};
  std::vector<std::uint32_t> versions;
  for (const at::Tensor& map : now) versions.push_back(version(map));
  const std::lock_guard lock(mutex_);
  const bool met = versions == versions_ &&
                   std::ranges::equal(now, met_, [](const auto& a, const auto& b) { return a.is_same(b); });
  if (!met) {
    met_.assign(now.begin(), now.end());
    versions_ = std::move(versions);
    folded_ = nullptr;
    return nullptr;
  }
  if (!folded_) {
    const at::NoGradGuard no_gradients;
    std::vector<Linear::Part> parts{followed_by(query, maps->query_weight, maps->query_bias),
                                    followed_by(key, maps->key_weight, maps->key_bias), value};
    folded_ = std::make_shared<const FoldedProjection>(std::move(parts), std::move(maps->others));
  }
  return folded_;
}

} // namespace hydrascope
