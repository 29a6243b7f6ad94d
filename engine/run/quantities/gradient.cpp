// The one file that takes gradients outside training: LibTorch's autograd header is slow to compile.
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/run/quantities/focus.h"

namespace hydrascope {

std::vector<at::Tensor> gradients_at(const at::Tensor& target, const std::vector<at::Tensor>& points) {
  std::vector<at::Tensor> gradients;
  if (target.requires_grad())
    gradients = torch::autograd::grad({target}, points, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                      /*allow_unused=*/true);
  gradients.resize(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(points[i]).detach();
  return gradients;
}

} // namespace hydrascope
