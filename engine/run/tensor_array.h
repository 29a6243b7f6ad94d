// Numbers leave LibTorch here.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/base/array.h"

namespace hydrascope {

inline Array to_array(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* first = values.const_data_ptr<float>();
  return Array{values.sizes().vec(), std::vector<float>(first, first + values.numel())};
}

} // namespace hydrascope
