#include "engine/training/loop/trained_parameters.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/models/transformer/encoder_layer.h"
#include "engine/models/transformer/low_rank.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

at::Tensor uniform(const std::int64_t rows, const std::int64_t columns, const double most,
                   const std::uint64_t key) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  auto* const data = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    data[i] = static_cast<float>(most * (2 * unit(mix({key, static_cast<std::uint64_t>(i)})) - 1));
  return values;
}

} // namespace

void add_factors(NamedTensors& leaves, const std::string& weight, const at::Tensor& value,
                 const LowRank& update, const std::uint64_t key) {
  const std::int64_t out = value.size(0), in = value.size(1), rank = update.rank;
  const double most = 1 / std::sqrt(static_cast<double>(in));
  leaves[weight + std::string(low_rank_a)] =
      uniform(rank, in, most, key).to(value.device()).requires_grad_(true);
  leaves[weight + std::string(low_rank_b)] =
      at::zeros({out, rank}, value.options().dtype(at::kFloat)).requires_grad_(true);
}

NamedTensors with_updates(const Model& model, const NamedTensors& parameters, const LowRank& update) {
  NamedTensors result;
  for (const auto& [name, value] : parameters) {
    if (name.ends_with(low_rank_b)) continue;
    if (!name.ends_with(low_rank_a)) {
      result[name] = value;
      continue;
    }
    const std::string weight = name.substr(0, name.size() - low_rank_a.size());
    result[weight] = with_low_rank(model.parameter(weight), value,
                                   parameters.at(weight + std::string(low_rank_b)), update.alpha);
  }
  return result;
}

namespace {

// The optimizer takes parameters, gradients and moments for contiguous; GPT-2's projections are read as
// views.
at::Tensor leaf(const at::Tensor& value) {
  return value.detach().to(at::kFloat).clone(at::MemoryFormat::Contiguous).requires_grad_(true);
}

bool is_head(const std::string& name) {
  return name.starts_with("layernorm.") || name.starts_with("pooler.") ||
         name.find("classifier.") != std::string::npos || name.starts_with("norm.") ||
         name.starts_with("lm_head.");
}

bool is_embedding(const std::string& name) {
  return name.starts_with("embeddings.") || name.starts_with("embed_");
}

// Of q, k, v or the attention's output, without LayerNorms.
bool is_projection(const std::string& name) {
  const bool attention =
      name.find(".attention.") != std::string::npos || name.find(".self_attn.") != std::string::npos;
  return attention && name.find("orm") == std::string::npos;
}

std::vector<std::string> class_labels(const ClassPlan& plan) {
  std::vector<std::string> labels;
  for (const auto& one : plan.classes) labels.push_back(one.label);
  return labels;
}

} // namespace

TrainedParts parts_to_train(const std::optional<TrainedParts>& asked, const Schedule& schedule) {
  const int count = static_cast<int>(schedule.layers.size());
  TrainedParts parts = asked.value_or(TrainedParts{});
  if (!asked)
    for (int layer = 0; layer < count; ++layer)
      if (!kernel_info(schedule.layers[static_cast<std::size_t>(layer)]).exact_softmax)
        parts.layers.push_back(layer);
  if (!asked && parts.layers.empty())
    for (int layer = std::max(0, count - 4); layer < count; ++layer) parts.layers.push_back(layer);
  std::ranges::sort(parts.layers);
  std::ranges::sort(parts.attention);
  std::vector<int> all = parts.layers;
  all.insert(all.end(), parts.attention.begin(), parts.attention.end());
  std::ranges::sort(all);
  if (std::ranges::adjacent_find(all) != all.end())
    throw UsageError("--train-layers",
                     fmt::format("layer {} is named twice", *std::ranges::adjacent_find(all)),
                     "name each layer once");
  if (!all.empty() && (all.front() < 0 || all.back() >= count))
    throw UsageError("--train-layers", fmt::format("the model has layers 0 to {}", count - 1),
                     "name some of these");
  if (all.empty() && !parts.head && !parts.embeddings)
    throw UsageError("--train-layers", "names nothing to train", "write it as 8-11,head");
  return parts;
}

void check_low_rank(const std::optional<LowRank>& low_rank, const TrainedParts& parts) {
  if (low_rank && parts.layers.empty() && parts.attention.empty())
    throw UsageError("--lora", "no layer is trained whose attention it could update",
                     "name some with --train-layers");
}

int first_trained(const TrainedParts& parts, const int layers) {
  if (parts.embeddings) return 0;
  int first = layers;
  for (const auto* some : {&parts.layers, &parts.attention})
    if (!some->empty()) first = std::min(first, some->front());
  return first;
}

std::string text_of(const TrainedParts& parts) {
  std::string text = fmt::format("layers {}", fmt::join(parts.layers, ","));
  if (!parts.attention.empty()) text += fmt::format(" attention of {}", fmt::join(parts.attention, ","));
  if (parts.head) text += " and head";
  if (parts.embeddings) text += " and embeddings";
  return text;
}

NamedTensors make_leaves(const PreparedModel& prepared, const TrainedParts& parts, const ClassPlan& plan,
                         const std::optional<LowRank>& low_rank, const std::uint64_t seed) {
  NamedTensors leaves;
  const Model& model = *prepared.model;
  const auto in = [](const std::string& name, const std::vector<int>& layers) {
    return std::ranges::find(layers, layer_of_parameter(name)) != layers.end();
  };
  for (const auto& name : model.parameter_names()) {
    if (name.starts_with("kernel.")) continue;
    const bool projection = is_projection(name);
    const bool layers = in(name, parts.layers) || (projection && in(name, parts.attention));
    if (layers && low_rank) {
      if (projection && name.ends_with(".weight"))
        add_factors(leaves, name, model.parameter(name), *low_rank, mix({seed, 6, leaves.size()}));
    } else if (layers || (parts.head && is_head(name)) || (parts.embeddings && is_embedding(name))) {
      leaves[name] = leaf(model.parameter(name));
    }
  }
  for (const auto* layers : {&parts.layers, &parts.attention})
    for (const int layer : *layers) {
      const LayerKernel made =
          layer_kernel(model, layer, prepared.schedule.layers[static_cast<std::size_t>(layer)]);
      if (!made.kernel->info().trainable) continue;
      for (const auto& [name, value] : made.parameters)
        leaves[kernel_parameter_name(layer, *made.kernel, name)] = leaf(value);
    }
  if (plan.new_head) {
    if (!parts.head)
      throw UsageError("--train-layers", "the model has no classifier for these classes",
                       "add head to the list");
    const auto classes = static_cast<std::int64_t>(plan.classes.size());
    // A new classifier reads the class token alone, as DeiT's, unless the model has one of another width:
    // then Hydra's focus map of the last layer (Eq. 15) covers all that the head reads.
    const std::int64_t features = model.info().has_classifier ? model.parameter("classifier.weight").size(1)
                                                              : std::int64_t{model.info().width};
    // Zeros: with LayerNorm's large values any other start would be a confident guess.
    const auto options = at::TensorOptions(at::kFloat).device(model.device());
    leaves["classifier.weight"] = leaf(at::zeros({classes, features}, options));
    leaves["classifier.bias"] = leaf(at::zeros({classes}, options));
  }
  return leaves;
}

RunnableModel runnable(const PreparedModel& prepared, const NamedTensors& parameters, const ClassPlan& plan) {
  NamedTensors replacements;
  for (const auto& [name, value] : parameters)
    if (!name.starts_with("kernel.")) replacements[name] = value;
  std::vector<LayerKernel> kernels = layer_kernels(*prepared.model, prepared.schedule.layers);
  for (std::size_t layer = 0; layer < kernels.size(); ++layer)
    for (auto& [name, value] : kernels[layer].parameters) {
      const auto trained =
          parameters.find(kernel_parameter_name(static_cast<int>(layer), *kernels[layer].kernel, name));
      if (trained != parameters.end()) value = trained->second;
    }
  Pass pass =
      plain_pass(prepared.model->with_parameters(replacements, class_labels(plan)), std::move(kernels));
  pass.training = true;
  pass.for_logits = true;
  pass.observed = false;
  return {std::move(pass)};
}

at::Tensor RunnableModel::output(const at::Tensor& hidden, const ModelInput& input, const int first,
                                 std::vector<at::Tensor>* states) const {
  Pass own = pass;
  own.input.input = input;
  own.first_layer = first;
  own.hidden = hidden;
  own.keep_hidden = states != nullptr;
  const PassOutcome outcome = run_pass(own);
  for (std::size_t i = 1; i + 1 < outcome.hidden.size(); ++i) states->push_back(outcome.hidden[i]);
  return outcome.output;
}

at::Tensor RunnableModel::logits(const at::Tensor& hidden, const ModelInput& input, const int first,
                                 std::vector<at::Tensor>* states) const {
  return pass.model.model->logits(output(hidden, input, first, states), input).to(at::kFloat);
}

} // namespace hydrascope::training
