#include "engine/models/transformer/encoder.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope {

struct Encoder::Origin {
  std::vector<std::filesystem::path> files;
  std::once_flag once;
  std::string hash;
};

namespace {

bool shape_fits(at::IntArrayRef shape, const std::vector<std::int64_t>& expected) {
  return std::equal(
      shape.begin(), shape.end(), expected.begin(), expected.end(),
      [](std::int64_t actual, std::int64_t required) { return required < 0 || actual == required; });
}

std::string shape_text(at::IntArrayRef shape) { return fmt::format("({})", fmt::join(shape, ",")); }
std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t extent : shape)
    parts.push_back(extent < 0 ? std::string("any") : std::to_string(extent));
  return fmt::format("({})", fmt::join(parts, ","));
}

std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 3);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Buffers and parts of published checkpoints that the forward pass here does not use.
bool is_known_extra(const std::string& name) {
  for (const char* extra : {"embeddings.position_ids", "embeddings.token_type_ids", "embeddings.mask_token",
                            "cls.seq_relationship.", "pooler.", "decoder."})
    if (name.starts_with(extra)) return true;
  for (const char* extra : {".num_batches_tracked", ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq"})
    if (name.ends_with(extra)) return true;
  return false;
}

// Whether the model computes something else without the tensor: it is of a block that runs, of any block
// where the configuration does not count them (timm), or of what timm puts before the blocks (registers, a
// norm).
bool is_needed(const std::string& name, const ModelInfo& info, const bool is_timm) {
  const int layer = layer_of_parameter(name);
  return (layer >= 0 && (is_timm || layer < info.layers)) || name == "reg_token" ||
         name.starts_with("norm_pre.");
}

// The checkpoint's parameters that the model uses, checked and in float32.
TensorMap checked_parameters(const Checkpoint& checkpoint, const ExpectedParameters& expected,
                             ModelInfo& info, const bool is_timm) {
  const std::string file =
      checkpoint.files.empty() ? info.folder.string() : checkpoint.files.front().string();
  std::vector<std::string> missing;
  std::vector<std::string> wrong;
  std::vector<std::string> unused;
  TensorMap parameters;
  for (const auto& [name, parameter] : expected) {
    const auto found = checkpoint.tensors.find(name);
    if (found == checkpoint.tensors.end()) {
      if (parameter.required) missing.push_back(name);
      continue;
    }
    if (!shape_fits(found->second.sizes(), parameter.shape))
      wrong.push_back(fmt::format("{} {} instead of {}", name, shape_text(found->second.sizes()),
                                  shape_text(parameter.shape)));
    else if (!found->second.is_floating_point())
      wrong.push_back(name + " is not made of floating-point numbers");
    else
      parameters.emplace(name, found->second.to(at::kFloat));
  }
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (!expected.contains(name) && !is_known_extra(name)) unused.push_back(name);
  const char* const remedy = "check that config.json and the weights belong together";
  if (!wrong.empty()) throw BrokenFile(file, "does not fit config.json: " + some_of(wrong), remedy);
  if (!missing.empty())
    throw BrokenFile(
        file,
        fmt::format("lacks {} tensor{} of the model: {}{}", missing.size(), missing.size() == 1 ? "" : "s",
                    some_of(missing), unused.empty() ? "" : " (it holds, unused, " + some_of(unused) + ")"),
        remedy);
  std::vector<std::string> needed;
  for (const std::string& name : unused)
    if (is_needed(name, info, is_timm)) needed.push_back(name);
  if (!needed.empty())
    throw ForeignFile(file, "its model has parts that are not computed here: " + some_of(needed),
                      "use a model without them, or record it as a capture (docs/captures.md)");
  if (!unused.empty())
    info.notes.push_back(
        fmt::format("the checkpoint holds tensors that the model does not use: {}", some_of(unused)));
  return parameters;
}

std::vector<std::string> imagenet_labels() {
  std::vector<std::string> labels;
  try {
    std::istringstream lines(read_text_file(assets_folder() / "imagenet1k.txt"));
    for (std::string line; std::getline(lines, line);) labels.push_back(line);
  } catch (const Error&) {
    return {};
  }
  return labels;
}

// transformers writes LABEL_0, LABEL_1, … where the classes have no names.
bool placeholders(const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [](const std::string& label) { return label.starts_with("LABEL_"); });
}

// One label per class: the configuration's if it names them all, else the ImageNet-1k names for 1,000 classes
// where assets/imagenet1k.txt exists, else `class n`.
std::vector<std::string> class_labels(const std::vector<std::string>& configured, std::size_t classes) {
  const bool complete = configured.size() == classes;
  if (complete && !(classes == 1000 && placeholders(configured))) return configured;
  if (classes == 1000)
    if (std::vector<std::string> names = imagenet_labels(); names.size() == classes) return names;
  if (complete) return configured;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < classes; ++i) labels.push_back("class " + std::to_string(i));
  return labels;
}

} // namespace

Encoder::Encoder(ModelConfig config, const std::filesystem::path& folder, const Checkpoint& checkpoint,
                 const ExpectedParameters& expected)
    : config_(std::move(config)), info_(info_of(config_, folder)), origin_(std::make_shared<Origin>()) {
  origin_->files = checkpoint.files;
  info_.has_classifier = false;
  info_.labels.clear();
  parameters_ = checked_parameters(checkpoint, expected, info_, config_.timm.has_value());
  if (config_.rotary)
    rotary_ = std::make_shared<const Rotary>(*config_.rotary, config_.max_positions,
                                             config_.width / config_.heads, device());
  for (int i = 0; i < config_.layers; ++i)
    layers_.push_back(std::make_shared<const EncoderLayer>(parameters_, config_, i));
}

at::Tensor Encoder::find(const std::string& name) const {
  const auto found = parameters_.find(name);
  return found == parameters_.end() ? at::Tensor() : found->second;
}

void Encoder::set_classes(std::int64_t classes) {
  info_.has_classifier = classes > 0;
  if (info_.labels.size() == static_cast<std::size_t>(classes)) return;
  info_.labels = class_labels(config_.labels, static_cast<std::size_t>(classes));
}

at::Tensor Encoder::block(int layer, const at::Tensor& hidden, const ModelInput& input, const Kernel& kernel,
                          const KernelParameters& kernel_parameters, const BlockOptions& options) const {
  if (layer < 0 || layer >= config_.layers)
    throw UsageError(fmt::format("layer {}", layer),
                     fmt::format("{} has the layers 0 to {}", info_.name, config_.layers - 1));
  const TokenLayout layout = layout_of(input);
  BlockContext context{.mask = input.mask,
                       .layout = layout,
                       .kernel = kernel,
                       .kernel_parameters = kernel_parameters,
                       .rotary = rotary_.get(),
                       .positions = input.positions,
                       .first_position = input.first_position,
                       .state = options.state,
                       .muted = options.muted};
  if (options.for_logits) {
    context.outputs = tokens_read();
    context.read = input.read;
  }
  return (*layers_[static_cast<std::size_t>(layer)])(hidden, context, options.tap);
}

KernelParameters Encoder::kernel_parameters(int layer, const KernelSpec& kernel) const {
  return kernels_.find(layer, kernel);
}

at::Tensor Encoder::attention_output_weight(int layer) const {
  const LayerNames names = layer_names(config_);
  const std::string prefix = fmt::format("encoder.layer.{}.", layer);
  const at::Tensor weight = parameter(prefix + names.attention_output + ".weight");
  return names.scale1 != nullptr ? weight * parameter(prefix + names.scale1).unsqueeze(1) : weight;
}

std::vector<std::string> Encoder::parameter_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters_) names.push_back(name);
  return names;
}

at::Tensor Encoder::parameter(const std::string& name) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end())
    throw Error(info_.name, "has no parameter '" + name + "'", "use a name of its model.safetensors");
  return found->second;
}

TensorMap Encoder::tensors() const {
  TensorMap all = parameters_;
  kernels_.add_to(all);
  return all;
}

void Encoder::adopt_classifier(const std::string& name, const at::Tensor& value) {
  const bool weight = name == "classifier.weight";
  const bool fits =
      weight ? value.dim() == 2 && (value.size(1) == config_.width || value.size(1) == 2 * config_.width)
             : value.dim() == 1;
  if (!fits)
    throw Error(name, fmt::format("has the shape {}", shape_text(value.sizes())),
                fmt::format("a classifier for {} has {} or {} columns", info_.name, config_.width,
                            2 * config_.width));
  parameters_[name] = value;
}

std::shared_ptr<const Model> Encoder::with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                                      const std::vector<std::string>& labels,
                                                      int image_size) const {
  const std::shared_ptr<Encoder> result = copy();
  std::set<int> changed_layers;
  bool ends_changed = !labels.empty();
  for (const auto& [name, value] : replacements) {
    if (name.starts_with("kernel.")) {
      result->kernels_.adopt(name, value, info_);
      continue;
    }
    const bool classifier = name == "classifier.weight" || name == "classifier.bias";
    const auto known = parameters_.find(name);
    const bool fits = known != parameters_.end() && known->second.sizes() == value.sizes();
    if (known != parameters_.end() && (fits || !classifier)) {
      if (!fits)
        throw Error(name,
                    fmt::format("has the shape {} instead of {}", shape_text(value.sizes()),
                                shape_text(known->second.sizes())),
                    "check that the parameters were made for this model");
      result->parameters_[name] = value;
    } else if (classifier && !has("cls_classifier.weight") &&
               !has("cls.predictions.transform.dense.weight")) {
      result->adopt_classifier(name, value);
    } else {
      throw Error(info_.name, "has no parameter '" + name + "'",
                  "check that the parameters were made for this model");
    }
    const int layer = layer_of_parameter(name);
    if (layer >= 0)
      changed_layers.insert(layer);
    else
      ends_changed = true;
  }
  if (!labels.empty()) {
    result->info_.labels = labels;
    result->info_.independent_labels = false; // training teaches one class for each item
  }
  if (image_size > 0) result->info_.image_size = image_size;
  for (const int layer : changed_layers)
    result->layers_[static_cast<std::size_t>(layer)] =
        std::make_shared<const EncoderLayer>(result->parameters_, config_, layer);
  if (ends_changed) result->rebuild_ends();
  if (const at::Device place = result->device(); rotary_ && place != device())
    result->rotary_ = std::make_shared<const Rotary>(*config_.rotary, config_.max_positions,
                                                     config_.width / config_.heads, place);
  if (!labels.empty() && result->info_.labels.size() != labels.size())
    throw Error("classifier",
                fmt::format("does not have as many outputs as there are labels ({})", labels.size()),
                "check that labels and classifier belong together");
  return result;
}

const std::string& Encoder::hash() const {
  std::call_once(origin_->once, [&] {
    if (origin_->files.size() == 1) {
      origin_->hash = sha256_of_file(origin_->files.front());
      return;
    }
    std::string all;
    for (const auto& file : origin_->files) all += sha256_of_file(file) + "\n";
    origin_->hash = sha256_of_text(all);
  });
  return origin_->hash;
}

void expect_layers(const ModelConfig& config, ExpectedParameters& expected) {
  const LayerNames names = layer_names(config);
  const std::int64_t width = config.width;
  const std::int64_t hidden = config.intermediate;
  for (int i = 0; i < config.layers; ++i) {
    const std::string prefix = fmt::format("encoder.layer.{}.", i);
    const auto linear = [&](const char* name, std::int64_t out, std::int64_t in, bool bias) {
      expected[prefix + name + ".weight"] = {{out, in}, true};
      expected[prefix + name + ".bias"] = {{out}, bias};
    };
    const std::int64_t key_width = width / config.heads * config.kv_heads();
    if (names.query_key_value != nullptr) linear(names.query_key_value, 3 * width, width, config.qkv_bias);
    if (names.query != nullptr) linear(names.query, width, width, config.qkv_bias);
    for (const char* name : {names.key, names.value})
      if (name != nullptr) linear(name, key_width, width, config.qkv_bias);
    linear(names.attention_output, width, width, config.output_bias);
    linear(names.mlp_in, hidden, width, config.mlp_bias);
    if (names.mlp_gate != nullptr) linear(names.mlp_gate, hidden, width, config.mlp_bias);
    linear(names.mlp_out, width, hidden, config.mlp_bias);
    for (const char* name : {names.norm1, names.norm2}) {
      expected[prefix + name + ".weight"] = {{width}, true};
      if (!config.rms_norm) expected[prefix + name + ".bias"] = {{width}, true};
    }
    for (const char* name : {names.scale1, names.scale2})
      if (name != nullptr) expected[prefix + name] = {{width}, true};
  }
}

} // namespace hydrascope
