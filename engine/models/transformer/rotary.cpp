#include "engine/models/transformer/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>

namespace hydrascope {

Rotary::Rotary(const std::int64_t tokens, const std::int64_t head_width) {
  const std::int64_t half = head_width / 2;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor frequencies =
      at::pow(10'000.0, at::arange(half, options) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angles = at::outer(at::arange(tokens, options), frequencies);
  cosine_ = at::cat({angles.cos(), angles.cos()}, 1).to(at::kFloat);
  sine_ = at::cat({-angles.sin(), angles.sin()}, 1).to(at::kFloat);
}

at::Tensor Rotary::operator()(const at::Tensor& x) const {
  const std::int64_t tokens = x.size(2);
  return x * cosine_.narrow(0, 0, tokens) + x.roll(x.size(3) / 2, 3) * sine_.narrow(0, 0, tokens);
}

} // namespace hydrascope
