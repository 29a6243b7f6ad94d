#include "engine/training/tasks/frozen_front.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include "engine/training/loop/autocast.h"

namespace hydrascope::training {
namespace {

std::shared_ptr<const Model> with_bfloat16_matrices(const std::shared_ptr<const Model>& model) {
  NamedTensors parameters;
  for (const auto& name : model->parameter_names()) parameters[name] = model->parameter(name);
  return model->with_parameters(bfloat16_matrices(parameters));
}

} // namespace

FrozenFront::FrozenFront(const PreparedModel& prepared, const int first, const bool bfloat16)
    : bfloat16_(bfloat16) {
  auto model = bfloat16 && first > 0 ? with_bfloat16_matrices(prepared.model) : prepared.model;
  const auto& all = prepared.schedule.layers;
  std::vector<LayerKernel> kernels = layer_kernels(*model, {all.begin(), all.begin() + first});
  pass_ = plain_pass(std::move(model), std::move(kernels));
  pass_.observed = false;
}

at::Tensor FrozenFront::embed(const ModelInput& input) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(bfloat16_);
  return model().embed(input);
}

at::Tensor FrozenFront::through(const at::Tensor& hidden, const ModelInput& input, const int from) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(bfloat16_);
  Pass pass = pass_;
  pass.input.input = input;
  pass.first_layer = from;
  pass.hidden = hidden;
  return run_pass(pass).output;
}

NamedTensors bfloat16_matrices(const NamedTensors& parameters) {
  NamedTensors matrices;
  for (const auto& [name, value] : parameters)
    if (name.starts_with("encoder.layer.") && value.dim() == 2) matrices[name] = value.to(at::kBFloat16);
  return matrices;
}

ModelInput prepare_version(const Model& model, const Image& image, const int copy, const int image_size,
                           const Augmentation& augmentation, const std::uint64_t key) {
  const int side = image_size > 0 ? image_size : model.info().image_size;
  return prepare_picture(model, augmented_copy(image, copy, side, augmentation, key), image_size);
}

} // namespace hydrascope::training
