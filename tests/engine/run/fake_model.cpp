#include "tests/engine/run/fake_model.h"

#include <sstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

// Weights that are the same in every run and differ between names.
at::Tensor weight(const std::string& name, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::uint32_t state = 2166136261U;
  for (const char letter : name) state = (state ^ static_cast<unsigned char>(letter)) * 16777619U;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1U << 24) * 2.0F - 1.0F;
  }
  return at::tensor(values).reshape(shape) * 0.7;
}

} // namespace

FakeModel::FakeModel(FakeOptions options)
    : options_(std::move(options)), runs_(std::make_shared<std::vector<int>>(options_.layers, 0)) {
  info_.name = "fake";
  info_.family = "bert";
  info_.input = InputKind::text;
  info_.layers = options_.layers;
  info_.heads = kHeads;
  info_.width = kWidth;
  info_.max_tokens = 64;
  info_.has_classifier = options_.head != FakeHead::none;
  if (info_.has_classifier) info_.labels = {"tabby, tabby cat", "espresso", "rocket"};
  info_.independent_labels = options_.independent_labels;
  for (int layer = 0; layer < options_.layers; ++layer)
    for (const char* part : {"query", "key", "value", "output"}) {
      const std::string name = "encoder.layer." + std::to_string(layer) + "." + part + ".weight";
      parameters_[name] = weight(name, {kWidth, kWidth});
    }
  const std::int64_t read = options_.head == FakeHead::first_and_mean ? 2 * kWidth : kWidth;
  parameters_["classifier.weight"] = weight("classifier", {kClasses, read});
  parameters_["embeddings.word_embeddings.weight"] = weight("words", {64, kWidth});
}

ModelInput FakeModel::prepare_text(const std::string& text, const std::optional<std::string>& second) const {
  ModelInput input;
  std::istringstream words(text + (second ? " " + *second : ""));
  std::vector<std::int64_t> ids = {0};
  input.tokens.push_back({"[CLS]", -1, true});
  for (std::string word; words >> word;) {
    std::int64_t id = 7;
    for (const char letter : word) id = (id * 31 + letter) % 64;
    ids.push_back(id);
    input.tokens.push_back({word, static_cast<int>(ids.size()) - 2, false});
  }
  input.token_ids = at::tensor(ids, at::TensorOptions().dtype(at::kLong)).unsqueeze(0);
  return input;
}

at::Tensor FakeModel::embed(const ModelInput& input) const {
  return parameters_.at("embeddings.word_embeddings.weight").index_select(0, input.token_ids[0]).unsqueeze(0);
}

at::Tensor FakeModel::block(int layer, const at::Tensor& hidden, const ModelInput& input,
                            const Kernel& kernel, const KernelParameters& parameters,
                            const BlockOptions& options) const {
  if (options_.before_block) options_.before_block(layer);
  ++(*runs_)[static_cast<std::size_t>(layer)];
  const std::string prefix = "encoder.layer." + std::to_string(layer) + ".";
  const std::int64_t tokens = hidden.size(1);
  const auto heads = [&](const char* part) {
    return at::linear(hidden, parameters_.at(prefix + part + ".weight"))
        .view({1, tokens, kHeads, kWidth / kHeads})
        .transpose(1, 2);
  };
  AttentionInput attention;
  attention.q = heads("query");
  attention.k = heads("key");
  attention.v = heads("value");
  attention.layer_input = hidden;
  attention.layout = input.layout;
  attention.mask = input.mask;
  AttentionOutput output = kernel.run(attention, parameters);
  if (AttentionTap* const tap = options.tap; tap != nullptr) {
    if (at::GradMode::is_enabled() && !output.out.requires_grad())
      output.out = output.out.detach().set_requires_grad(true);
    *tap = {attention, output.out, output.path, output.zero_denominators};
  }
  const at::Tensor finished =
      without_muted(kernel.finish(output.out, attention.mask, parameters), options.muted);
  const at::Tensor joined = finished.transpose(1, 2).reshape({1, tokens, kWidth});
  const at::Tensor mixed = hidden + at::linear(joined, parameters_.at(prefix + "output.weight"));
  return mixed + at::tanh(mixed * 0.5);
}

at::Tensor FakeModel::logits(const at::Tensor& hidden, const ModelInput&) const {
  if (options_.head == FakeHead::none) return {};
  const at::Tensor first = hidden.select(1, 0);
  const at::Tensor read =
      options_.head == FakeHead::first_and_mean ? at::cat({first, hidden.slice(1, 1).mean(1)}, 1) : first;
  return at::linear(read, parameters_.at("classifier.weight"));
}

KernelParameters FakeModel::kernel_parameters(int layer, const KernelSpec& kernel) const {
  KernelParameters found;
  const std::string prefix = "kernel." + std::to_string(layer) + "." + kernel.text() + ".";
  for (const auto& [name, value] : parameters_)
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = value;
  return found;
}

at::Tensor FakeModel::attention_output_weight(int layer) const {
  return parameters_.at("encoder.layer." + std::to_string(layer) + ".output.weight");
}

std::vector<std::string> FakeModel::parameter_names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters_) names.push_back(name);
  return names;
}

std::shared_ptr<const Model> FakeModel::with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                                        const std::vector<std::string>& labels, int) const {
  auto model = std::make_shared<FakeModel>(*this);
  for (const auto& [name, value] : replacements) model->parameters_[name] = value;
  if (!labels.empty()) model->info_.labels = labels;
  return model;
}

std::shared_ptr<ModelStore> fake_source(std::shared_ptr<const FakeModel> model,
                                        std::vector<AdapterInfo> adapters) {
  return make_model_store(
      {[model](const std::filesystem::path&) { return model; }, [adapters] { return adapters; }});
}

RunRequest fake_request(const std::string& text, const std::string& layers) {
  RunRequest request;
  request.model_folder = "fake";
  request.input = TextInput{text, std::nullopt};
  if (!layers.empty()) request.schedule = ScheduleText{.layers = {layers}};
  return request;
}

} // namespace hydrascope
