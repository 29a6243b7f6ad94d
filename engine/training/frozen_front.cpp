#include "engine/training/frozen_front.h"

#include <ATen/core/grad_mode.h>

#include "engine/training/autocast.h"

namespace hydrascope::training {
namespace {

std::shared_ptr<const Model> with_bfloat16_matrices(const std::shared_ptr<const Model>& model) {
  NamedTensors parameters;
  for (const auto& name : model->parameter_names()) parameters[name] = model->parameter(name);
  return model->with_parameters(bfloat16_matrices(parameters));
}

} // namespace

FrozenFront::FrozenFront(const PreparedModel& prepared, const int first, const bool bfloat16)
    : model_(bfloat16 && first > 0 ? with_bfloat16_matrices(prepared.model) : prepared.model),
      first_(first),
      bfloat16_(bfloat16),
      kernels_(make_kernels(prepared.schedule)) {}

at::Tensor FrozenFront::embed(const ModelInput& input) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(bfloat16_);
  return model_->embed(input);
}

at::Tensor FrozenFront::through(at::Tensor hidden, const ModelInput& input, const int from) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(bfloat16_);
  for (int layer = from; layer < first_; ++layer) {
    const Kernel& kernel = *kernels_[static_cast<std::size_t>(layer)];
    hidden = model_->block(layer, hidden, input, kernel, layer_parameters(*model_, layer, kernel));
  }
  return hidden;
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
