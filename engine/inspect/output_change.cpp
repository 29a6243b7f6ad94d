#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include "engine/inspect/inspect.h"

namespace hydrascope {

at::Tensor output_change(const at::Tensor& softmax_out, const at::Tensor& kernel_out) {
  const at::Tensor reference = softmax_out.to(at::kDouble).flatten(2);
  const at::Tensor changed = kernel_out.to(at::kDouble).flatten(2);
  const at::Tensor reference_norm = reference.norm(2, {-1});
  const at::Tensor changed_norm = changed.norm(2, {-1});
  const at::Tensor cosine = (reference * changed).sum(-1) / (reference_norm * changed_norm);
  const at::Tensor error = (changed - reference).norm(2, {-1}) / reference_norm;
  return at::stack({changed_norm / reference_norm, cosine, error}, -1);
}

} // namespace hydrascope
