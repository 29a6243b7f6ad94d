#include "engine/models/transformer/low_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>

namespace hydrascope {

at::Tensor with_low_rank(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b,
                         const double alpha) {
  return weight.detach().to(at::kFloat) + at::matmul(b, a) * (alpha / static_cast<double>(a.size(0)));
}

} // namespace hydrascope
