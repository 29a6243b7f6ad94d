#include "engine/models/transformer/kernel_tensors.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

// `kernel.LAYER.KERNEL.NAME` → layer, kernel, name. A kernel's written parameters may hold dots themselves.
struct KernelTensorName {
  int layer = 0;
  std::string kernel, parameter;
};
KernelTensorName kernel_tensor_name(const std::string& name) {
  KernelTensorName result;
  std::size_t at = 7;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9' && result.layer < 100000)
    result.layer = 10 * result.layer + (name[at++] - '0');
  const std::string rest =
      at > 7 && at < name.size() && name[at] == '.' ? name.substr(at + 1) : std::string();
  std::size_t split = std::string::npos;
  // A typed map's own parameters have any name, and what is written before them holds no dot.
  if (!rest.starts_with("phi"))
    for (const char* known : {".query_map.", ".key_map.", ".norm.", ".omega"})
      split = std::min(split, rest.find(known));
  if (split == std::string::npos) split = rest.find('.');
  if (split == std::string::npos || split == 0)
    throw Error(name, "is not of the form kernel.LAYER.KERNEL.NAME", "check that the adapter is complete");
  result.kernel = rest.substr(0, split);
  result.parameter = rest.substr(split + 1);
  return result;
}

} // namespace

void KernelTensors::adopt(const std::string& name, const at::Tensor& value, const ModelInfo& model) {
  const KernelTensorName parsed = kernel_tensor_name(name);
  if (parsed.layer >= model.layers)
    throw Error(name, fmt::format("{} has the layers 0 to {}", model.name, model.layers - 1));
  layers_[parsed.layer][parsed.kernel][parsed.parameter] = value;
}

KernelParameters KernelTensors::find(int layer, const KernelSpec& kernel) const {
  const auto of_layer = layers_.find(layer);
  if (of_layer == layers_.end()) return {};
  for (const std::string& name : {kernel.text(), kernel.name})
    if (const auto found = of_layer->second.find(name); found != of_layer->second.end()) return found->second;
  return {};
}

std::vector<std::string> KernelTensors::kernels(const int layer) const {
  std::vector<std::string> names;
  if (const auto of_layer = layers_.find(layer); of_layer != layers_.end())
    for (const auto& [kernel, parameters] : of_layer->second) names.push_back(kernel);
  return names;
}

void KernelTensors::add_to(std::map<std::string, at::Tensor>& tensors) const {
  for (const auto& [layer, kernels] : layers_)
    for (const auto& [kernel, parameters] : kernels)
      for (const auto& [name, value] : parameters)
        tensors.emplace(fmt::format("kernel.{}.{}.{}", layer, kernel, name), value);
}

} // namespace hydrascope
