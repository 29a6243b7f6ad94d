#include "engine/training/tasks/start_maps.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/safetensors.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/training/loop/prepared_model.h"

namespace hydrascope::training {
namespace {

constexpr std::string_view first_layer = "kernel.0.";

// The KERNEL of every kernel.0.KERNEL.NAME with one of these names.
std::set<std::string> kernels_with(const KernelParameters& parameters, const SafetensorsFile& maps) {
  std::set<std::string> kernels;
  for (const auto& [name, value] : parameters) {
    const std::string end = "." + name;
    for (const auto& [map, view] : maps.tensors())
      if (map.size() > first_layer.size() + end.size() && map.starts_with(first_layer) && map.ends_with(end))
        kernels.insert(map.substr(first_layer.size(), map.size() - first_layer.size() - end.size()));
  }
  return kernels;
}

std::string map_name(const std::size_t layer, const std::string& kernel, const std::string& name) {
  return fmt::format("kernel.{}.{}.{}", layer, kernel, name);
}

bool has_all(const SafetensorsFile& maps, const std::string& kernel,
             const std::vector<KernelParameters>& layers) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (const auto& [name, value] : layers[layer]) {
      const auto found = maps.tensors().find(map_name(layer, kernel, name));
      if (found == maps.tensors().end() || value.sizes() != at::IntArrayRef(found->second.shape))
        return false;
    }
  return true;
}

std::string fitting_kernel(const SafetensorsFile& maps, const Kernel& kernel,
                           const std::vector<KernelParameters>& layers) {
  const std::string name = kernel_parameter_name(0, kernel, "");
  const std::string own = name.substr(first_layer.size(), name.size() - first_layer.size() - 1);
  if (has_all(maps, own, layers)) return own;
  std::vector<std::string> fitting;
  for (const std::string& other : kernels_with(layers.front(), maps))
    if (has_all(maps, other, layers)) fitting.push_back(other);
  if (fitting.size() == 1) return fitting.front();
  throw UsageError("--start " + maps.path().string(),
                   fitting.empty()
                       ? std::string("has no maps whose names and shapes are those of this kernel's")
                       : fmt::format("has such maps of several kernels: {}", fmt::join(fitting, ", ")),
                   "name an adapter whose maps fit this kernel in every layer of this model");
}

} // namespace

void set_start_maps(const std::filesystem::path& file, const Kernel& kernel,
                    const std::vector<KernelParameters>& layers) {
  const at::NoGradGuard no_gradients;
  const SafetensorsFile maps = SafetensorsFile::open(file);
  const std::string from = fitting_kernel(maps, kernel, layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (const auto& [name, value] : layers[layer])
      at::Tensor(value).copy_(tensor_of(maps.tensors().at(map_name(layer, from, name)), maps));
}

} // namespace hydrascope::training
