#include "engine/run/target.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

// Whether `name` is the label or one of its comma-separated names ("tabby, tabby cat").
bool names_label(const std::string& name, const std::string& label) {
  const std::string all = lower_case(label);
  if (all == name) return true;
  return std::ranges::any_of(split(all, ','), [&](std::string_view part) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    return part == name;
  });
}

int token_of_text(const std::string& text, const Model& model) {
  if (const auto token = model.output_named(text)) return static_cast<int>(*token);
  throw UsageError("--target class:" + text, fmt::format("is not one token of {}", model.info().name),
                   "give a token with its leading space, as \"class: the\", or its id");
}

int class_of_name(const std::string& given, const ModelInfo& model,
                  const std::vector<AdapterInfo>& adapters) {
  const std::string name = lower_case(given);
  for (std::size_t i = 0; i < model.labels.size(); ++i)
    if (names_label(name, model.labels[i])) return static_cast<int>(i);
  for (auto adapter = adapters.rbegin(); adapter != adapters.rend(); ++adapter)
    for (std::size_t i = 0; i < adapter->classes.size(); ++i)
      if (lower_case(adapter->classes[i].id) == name) return static_cast<int>(i);
  std::string near;
  for (const std::string& label : model.labels)
    if (near.size() < 200 && contains_any_case(label, name)) near += (near.empty() ? "" : "; ") + label;
  throw UsageError("--target class:" + given,
                   fmt::format("the model {} has no class of this name", model.name),
                   near.empty() ? "give a label as the prediction list shows it, or an index"
                                : "names that contain it: " + near);
}

} // namespace

CheckedTarget check_target(const Target& target, const Model& checked_model,
                           const std::vector<AdapterInfo>& adapters) {
  const ModelInfo& model = checked_model.info();
  CheckedTarget checked;
  checked.kind = target.kind;
  switch (target.kind) {
    case Target::Kind::predicted:
      if (!model.has_classifier) checked.kind = Target::Kind::norm;
      break;
    case Target::Kind::norm: break;
    case Target::Kind::similarity:
      if (model.input != InputKind::text)
        throw UsageError("--target similarity", fmt::format("the model {} takes pictures", model.name),
                         "use class:NAME or norm");
      checked.text = target.text;
      break;
    case Target::Kind::class_index:
    case Target::Kind::class_name:
      if (!model.has_classifier)
        throw UsageError("--target class", fmt::format("the model {} has no classifier", model.name),
                         "use norm or, for a text model, similarity:TEXT");
      checked.kind = Target::Kind::class_index;
      checked.index = target.kind == Target::Kind::class_index ? target.index
                      : model.causal                           ? token_of_text(target.text, checked_model)
                                                               : class_of_name(target.text, model, adapters);
      break;
  }
  return checked;
}

TargetValue target_value(const CheckedTarget& target, const Model& model, const at::Tensor& logits,
                         const at::Tensor& final_hidden, const at::Tensor& mask, const at::Tensor& other) {
  switch (target.kind) {
    case Target::Kind::similarity:
      return {similarity_target(final_hidden, mask, other),
              fmt::format("cosine similarity with \"{}\"", target.text)};
    case Target::Kind::norm: return {norm_target(final_hidden, mask), "embedding norm"};
    default: break;
  }
  const std::int64_t classes = logits.size(1);
  const std::int64_t index =
      target.kind == Target::Kind::predicted ? logits.argmax(1).item<std::int64_t>() : target.index;
  if (index < 0 || index >= classes)
    throw UsageError(fmt::format("--target class:{}", index),
                     fmt::format("the model has {} {}", classes, model.info().causal ? "tokens" : "classes"),
                     fmt::format("use 0 to {}", classes - 1));
  const std::string label = model.output_label(index);
  return {class_target(logits, index),
          model.info().causal ? fmt::format("logit of the next token “{}”", label) : "logit of " + label};
}

at::Tensor probabilities_of(const at::Tensor& logits, const ModelInfo& model) {
  return model.independent_labels ? at::sigmoid(logits) : at::softmax(logits, -1);
}

at::Tensor mean_pooled(const at::Tensor& hidden, const at::Tensor& mask) {
  if (!mask.defined()) return hidden.mean(1);
  const at::Tensor real = mask.to(at::kBool).unsqueeze(-1);
  const at::Tensor kept = at::where(real, hidden, at::zeros({}, hidden.options()));
  return kept.sum(1) / real.sum(1).clamp_min(1);
}

at::Tensor norm_target(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::Tensor pooled = mean_pooled(hidden, mask);
  return (pooled * pooled).sum() * 0.5;
}

at::Tensor similarity_target(const at::Tensor& hidden, const at::Tensor& mask, const at::Tensor& other) {
  const at::Tensor pooled = mean_pooled(hidden, mask);
  constexpr double kTiny = 1e-12;
  const at::Tensor constant = other.detach();
  const at::Tensor direction = constant / constant.norm().clamp_min(kTiny);
  return (pooled * direction).sum() / pooled.norm().clamp_min(kTiny);
}

at::Tensor class_target(const at::Tensor& logits, std::int64_t index) {
  return logits.select(0, 0).select(0, index);
}

std::optional<std::int64_t> only_token_read(const at::Tensor& gradient_at_last_hidden) {
  const at::NoGradGuard no_grad;
  const at::Tensor read = gradient_at_last_hidden.select(0, 0).ne(0).any(1).nonzero().flatten().cpu();
  if (read.numel() > 1) return std::nullopt;
  return read.numel() == 1 ? read[0].item<std::int64_t>() : 0;
}

std::vector<at::Tensor> gradients_at(const at::Tensor& target, const std::vector<at::Tensor>& points) {
  std::vector<at::Tensor> gradients;
  if (target.requires_grad())
    gradients = torch::autograd::grad({target}, points, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                      /*allow_unused=*/true);
  gradients.resize(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(points[i]).detach();
  return gradients;
}

} // namespace hydrascope
