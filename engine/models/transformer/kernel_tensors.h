// The trained parameters of kernels that adapters bring, named kernel.LAYER.KERNEL.NAME.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/models/model_info.h"

namespace hydrascope {

class KernelTensors {
public:
  // Throws Error for a name of another form, and for a layer that the model does not have.
  void adopt(const std::string& name, const at::Tensor& value, const ModelInfo& model);
  // A kernel's parameters in a layer; empty if there are none.
  KernelParameters find(int layer, const KernelSpec& kernel) const;
  // The kernels that have parameters in a layer, as the adapters name them.
  std::vector<std::string> kernels(int layer) const;
  // Adds all under their names.
  void add_to(std::map<std::string, at::Tensor>& tensors) const;

private:
  std::map<int, std::map<std::string, KernelParameters>> layers_; // layer → kernel as named by the adapter
};

} // namespace hydrascope
