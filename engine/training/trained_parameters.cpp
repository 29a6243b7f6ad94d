#include "engine/training/trained_parameters.h"

#include <algorithm>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/plain/error.h"

namespace hydrascope::training {
namespace {

at::Tensor leaf(const at::Tensor& value) {
  return value.detach().to(at::kFloat).clone().requires_grad_(true);
}

bool is_head(const std::string& name) {
  return name.starts_with("layernorm.") || name.find("classifier.") != std::string::npos;
}

std::vector<std::string> class_labels(const ClassPlan& plan) {
  std::vector<std::string> labels;
  for (const auto& one : plan.classes) labels.push_back(one.label);
  return labels;
}

} // namespace

std::vector<int> layers_to_train(const std::vector<int>& asked, const Schedule& schedule) {
  const int count = static_cast<int>(schedule.layers.size());
  std::vector<int> layers = asked;
  if (layers.empty())
    for (int layer = 0; layer < count; ++layer)
      if (!kernel_info(schedule.layers[static_cast<std::size_t>(layer)].name).exact_softmax)
        layers.push_back(layer);
  if (layers.empty())
    for (int layer = std::max(0, count - 4); layer < count; ++layer) layers.push_back(layer);
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  if (layers.front() < 0 || layers.back() >= count)
    throw UsageError("--train-layers", fmt::format("the model has layers 0 to {}", count - 1),
                     "name some of these");
  return layers;
}

NamedTensors make_leaves(const PreparedModel& prepared, const std::vector<int>& layers, const bool head,
                         const ClassPlan& plan) {
  NamedTensors leaves;
  const Model& model = *prepared.model;
  for (const auto& name : model.parameter_names()) {
    if (name.starts_with("kernel.")) continue;
    const bool in_layer = std::ranges::any_of(
        layers, [&](const int layer) { return name.starts_with(fmt::format("encoder.layer.{}.", layer)); });
    if (in_layer || (head && is_head(name))) leaves[name] = leaf(model.parameter(name));
  }
  for (const int layer : layers) {
    const auto kernel = make_kernel(prepared.schedule.layers[static_cast<std::size_t>(layer)]);
    if (!kernel->info().trainable) continue;
    for (const auto& [name, value] : layer_parameters(model, layer, *kernel))
      leaves[kernel_parameter_name(layer, *kernel, name)] = leaf(value);
  }
  if (plan.new_head) {
    if (!head)
      throw UsageError("--train-layers", "the model has no classifier for these classes",
                       "add head to the list");
    const auto classes = static_cast<std::int64_t>(plan.classes.size());
    const std::int64_t features = model.info().has_classifier ? model.parameter("classifier.weight").size(1)
                                                              : 2 * std::int64_t{model.info().width};
    // Zeros: LayerNorm's large values would make any other start a loud guess.
    leaves["classifier.weight"] = leaf(at::zeros({classes, features}, at::kFloat));
    leaves["classifier.bias"] = leaf(at::zeros({classes}, at::kFloat));
  }
  return leaves;
}

RunnableModel runnable(const PreparedModel& prepared, const NamedTensors& parameters, const ClassPlan& plan) {
  RunnableModel result;
  result.kernels = make_kernels(prepared.schedule);
  NamedTensors replacements;
  for (const auto& [name, value] : parameters)
    if (!name.starts_with("kernel.")) replacements[name] = value;
  result.model = prepared.model->with_parameters(replacements, class_labels(plan));
  for (int layer = 0; layer < prepared.model->info().layers; ++layer) {
    const Kernel& kernel = *result.kernels[static_cast<std::size_t>(layer)];
    KernelParameters own = layer_parameters(*prepared.model, layer, kernel);
    for (auto& [name, value] : own) {
      const auto trained = parameters.find(kernel_parameter_name(layer, kernel, name));
      if (trained != parameters.end()) value = trained->second;
    }
    result.kernel_parameters.push_back(std::move(own));
  }
  return result;
}

at::Tensor RunnableModel::logits(at::Tensor hidden, const ModelInput& input, const int first) const {
  for (int layer = first; layer < model->info().layers; ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    hidden = model->block(layer, hidden, input, *kernels[index], kernel_parameters[index]);
  }
  return model->logits(hidden, input).to(at::kFloat);
}

} // namespace hydrascope::training
