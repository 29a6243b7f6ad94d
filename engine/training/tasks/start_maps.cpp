#include "engine/training/tasks/start_maps.h"

#include <algorithm>
#include <string>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/kernel_tensors.h"

namespace hydrascope::training {
namespace {

// Whether a kernel has all of the layers' parameters, with their shapes.
bool has_all(const KernelTensors& maps, const KernelSpec& kernel,
             const std::vector<KernelParameters>& layers) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const KernelParameters found = maps.find(static_cast<int>(layer), kernel);
    for (const auto& [name, value] : layers[layer])
      if (!found.contains(name) || found.at(name).sizes() != value.sizes()) return false;
  }
  return true;
}

} // namespace

void set_start_maps(const std::filesystem::path& file, const KernelSpec& kernel, const ModelInfo& model,
                    const std::vector<KernelParameters>& layers) {
  const at::NoGradGuard no_gradients;
  const SafetensorsFile adapter = SafetensorsFile::open(file);
  KernelTensors maps;
  for (const auto& [name, view] : adapter.tensors())
    if (name.starts_with("kernel.")) maps.adopt(name, tensor_of(view, adapter), model);
  KernelSpec from = kernel;
  if (!has_all(maps, kernel, layers)) {
    std::vector<std::string> fitting = maps.kernels(0);
    std::erase_if(fitting, [&](const std::string& name) { return !has_all(maps, {name}, layers); });
    if (fitting.size() != 1)
      throw UsageError("--start " + file.string(),
                       fitting.empty()
                           ? std::string("has no maps whose names and shapes are those of this kernel's")
                           : fmt::format("has such maps of several kernels: {}", fmt::join(fitting, ", ")),
                       "name an adapter whose maps fit this kernel in every layer of this model");
    from = {fitting.front()};
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const KernelParameters found = maps.find(static_cast<int>(layer), from);
    for (const auto& [name, value] : layers[layer]) at::Tensor(value).copy_(found.at(name));
  }
  adapter.mapping()->require();
}

} // namespace hydrascope::training
