// A kernel with the parameters it runs with in one layer of a model.
#pragma once

#include <memory>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {

struct LayerKernel {
  std::shared_ptr<const Kernel> kernel;
  KernelParameters parameters;
  bool own_parameters = false; // trained ones that an adapter brought
};

// With the kernel's initial parameters. Throws UsageError (unknown kernel).
LayerKernel initial_layer_kernel(const ModelInfo& model, int layer, const KernelSpec& spec);
// With trained parameters where the model has them, else the initial ones. Throws UsageError.
LayerKernel layer_kernel(const Model& model, int layer, const KernelSpec& spec);
// The same for each of the first layers that `specs` names.
std::vector<LayerKernel> layer_kernels(const Model& model, const std::vector<KernelSpec>& specs);

} // namespace hydrascope
