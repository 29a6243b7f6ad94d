#include "engine/run/layer_kernel.h"

#include <utility>

namespace hydrascope {

LayerKernel initial_layer_kernel(const ModelInfo& model, const int layer, const KernelSpec& spec) {
  LayerKernel made;
  made.kernel = make_kernel(spec);
  made.parameters = made.kernel->initial_parameters(model.heads, model.width / model.heads, layer);
  return made;
}

LayerKernel layer_kernel(const Model& model, const int layer, const KernelSpec& spec) {
  KernelParameters trained = model.kernel_parameters(layer, spec);
  if (trained.empty()) return initial_layer_kernel(model.info(), layer, spec);
  return {make_kernel(spec), std::move(trained), true};
}

std::vector<LayerKernel> layer_kernels(const Model& model, const std::vector<KernelSpec>& specs) {
  std::vector<LayerKernel> kernels;
  for (const KernelSpec& spec : specs)
    kernels.push_back(layer_kernel(model, static_cast<int>(kernels.size()), spec));
  return kernels;
}

} // namespace hydrascope
