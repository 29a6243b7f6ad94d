#include "engine/models/capture/capture_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/models/transformer/checkpoint.h"
#include "engine/models/transformer/kernel_tensors.h"

namespace hydrascope {
namespace {

constexpr const char* no_model = "a capture holds queries, keys and values, but no model that could run";

struct Opened {
  Capture capture;
  CapturePart part;
  std::int64_t item = 0;
  ModelInfo info;

  const CaptureLayer& layer(int index) const {
    return capture.layers()[part.layers[static_cast<std::size_t>(index)]];
  }
};

// The keys of this sequence that count; all where the mask is empty. Where `real` is false the others.
std::vector<std::int64_t> keys_of(const CaptureLayer& layer, std::int64_t item, bool real) {
  std::vector<std::int64_t> keys;
  for (std::int64_t key = 0; key < layer.keys; ++key) {
    const bool counts = layer.mask.empty() || layer.mask[static_cast<std::size_t>(item * layer.keys + key)];
    if (counts == real) keys.push_back(key);
  }
  return keys;
}

std::vector<std::int64_t> real_keys(const CaptureLayer& layer, std::int64_t item) {
  return keys_of(layer, item, true);
}

// Texts of `count` tokens; numbers where the capture has none.
std::vector<std::string> texts_of(const Capture& capture, std::int64_t count, std::int64_t item,
                                  const char* what) {
  const CaptureTokens* const tokens = capture.tokens(count, item);
  if (tokens != nullptr && !tokens->texts.empty()) return tokens->texts;
  std::vector<std::string> texts;
  for (std::int64_t token = 0; token < count; ++token) {
    const std::int64_t patch = tokens == nullptr ? -1 : token - tokens->prefix;
    texts.push_back(patch < 0 ? fmt::format("{} {}", what, token)
                              : fmt::format("row {}, column {}", patch / tokens->columns + 1,
                                            patch % tokens->columns + 1));
  }
  return texts;
}

CaptureInfo info_of(const Opened& opened, const CaptureAddress& address) {
  const Capture& capture = opened.capture;
  const CaptureLayer& first = opened.layer(0);
  CaptureInfo info;
  info.file = address.path;
  info.items = first.batch;
  info.item = opened.item;
  for (const CapturePart& part : capture.parts()) info.parts.push_back(part.name);
  info.key_heads = static_cast<int>(first.key_heads);
  info.causal = first.causal;
  info.source = capture.source();
  info.hash = capture.content_hash();
  info.has_output_weights = true;
  for (int layer = 0; layer < static_cast<int>(opened.part.layers.size()); ++layer) {
    info.layer_names.push_back(opened.layer(layer).name);
    info.has_output_weights = info.has_output_weights && opened.layer(layer).wo.has_value();
  }
  if (first.queries == first.keys) {
    info.tokens = first.queries;
    info.padding = keys_of(first, opened.item, false);
    const CaptureTokens* const tokens = capture.tokens(first.queries, opened.item);
    if (tokens != nullptr && tokens->texts.empty()) {
      info.prefix = tokens->prefix;
      info.rows = tokens->rows;
      info.columns = tokens->columns;
      info.image = tokens->image;
    } else {
      info.texts = texts_of(capture, first.queries, opened.item, "token");
    }
    return info;
  }
  // Keys that are padding have no weight and are left out.
  const std::vector<std::int64_t> keys = real_keys(first, opened.item);
  const std::vector<std::string> names = texts_of(capture, first.keys, opened.item, "key");
  info.queries = first.queries;
  info.tokens = first.queries + static_cast<std::int64_t>(keys.size());
  info.texts = texts_of(capture, first.queries, opened.item, "query");
  for (const std::int64_t key : keys) info.texts.push_back(names[static_cast<std::size_t>(key)]);
  return info;
}

Opened open_named(const std::filesystem::path& named) {
  const std::optional<CaptureAddress> address = capture_address(named);
  if (!address)
    throw Error(named.string(), "there is no such capture", "name a file that tools/capture.py has written");
  std::string stamp = model_stamp(named); // before anything is read: a file may change meanwhile
  Opened opened{.capture = Capture::open(address->path), .part = {}, .item = address->item, .info = {}};
  const std::size_t part = part_of(opened.capture, *address);
  opened.part = opened.capture.parts()[part];
  CaptureInfo capture = info_of(opened, *address);
  capture.part = static_cast<std::int64_t>(part);

  ModelInfo& info = opened.info;
  info.name = address->path.stem().string();
  if (capture.parts.size() > 1) info.name += " " + opened.part.name;
  if (address->has_item) info.name += fmt::format(" {}", opened.item);
  info.folder = named;
  info.stamp = std::move(stamp);
  info.family = "capture";
  info.input = capture.rows > 0 ? InputKind::image : InputKind::text;
  const CaptureLayer& first = opened.layer(0);
  info.layers = static_cast<int>(opened.part.layers.size());
  info.heads = static_cast<int>(first.heads);
  info.width = static_cast<int>(first.heads * first.width);
  info.prefix_tokens = static_cast<int>(capture.prefix);
  info.max_tokens = static_cast<int>(capture.tokens);
  info.notes = opened.capture.notes();
  if (capture.parts.size() > 1)
    info.notes.push_back(fmt::format("the capture has the parts 0 to {}; this is {}, {}",
                                     capture.parts.size() - 1, part, opened.part.name));
  if (capture.items > 1)
    info.notes.push_back(
        fmt::format("the capture has the sequences 0 to {}; this is {}", capture.items - 1, opened.item));
  info.capture = std::make_shared<const CaptureInfo>(std::move(capture));
  return opened;
}

class CaptureModel final : public Model {
public:
  explicit CaptureModel(Opened opened)
      : opened_(std::make_shared<const Opened>(std::move(opened))),
        checked_(std::make_shared<std::vector<std::atomic<bool>>>(opened_->part.layers.size())),
        hash_(opened_->capture.model_hash()) {}

  const ModelInfo& info() const override { return opened_->info; }

  ModelInput recorded_input() const override {
    const CaptureInfo& capture = *info().capture;
    ModelInput input;
    input.layout = {capture.prefix, capture.rows, capture.columns};
    for (std::size_t i = 0; i < capture.texts.size(); ++i)
      input.tokens.push_back({capture.texts[i], static_cast<int>(i), false});
    return input;
  }
  ModelInput with_hidden(ModelInput input, std::span<const std::int64_t> tokens) const override {
    if (tokens.empty()) return input;
    throw UsageError(info().name, no_model, "show all tokens: hiding some needs a model");
  }

  // Nothing flows from block to block.
  at::Tensor embed(const ModelInput& /*input*/) const override {
    return at::zeros({1, 1, 1}, at::TensorOptions(device_).dtype(at::kFloat));
  }
  at::Tensor block(int layer, const at::Tensor& hidden, const ModelInput& input, const Kernel& kernel,
                   const KernelParameters& parameters, const BlockOptions& options) const override {
    if (!options.muted.empty())
      throw UsageError(info().name, no_model, "unmute all heads: muting some needs a model");
    check_numbers(layer);
    const AttentionInput attention = attention_input(layer, input.layout);
    if (options.tap != nullptr && options.tap->reads_attention) {
      // What taps the layer runs the kernel itself, as far as it needs to.
      const Plan plan = kernel.plan(shape_of(attention, parameters));
      if (!plan.support.ok)
        throw UsageError(kernel.spec().text(), plan.support.reason, "choose another kernel");
      options.tap->input = attention;
      options.tap->path = path_name(plan.path);
      return hidden;
    }
    const AttentionOutput output = kernel.run(attention, parameters);
    if (options.tap != nullptr) {
      options.tap->path = output.path;
      options.tap->zero_denominators = output.zero_denominators;
    }
    return hidden;
  }
  at::Tensor logits(const at::Tensor& /*hidden*/, const ModelInput& /*input*/) const override { return {}; }
  at::Tensor final_hidden(const at::Tensor& hidden) const override { return hidden; }

  KernelParameters kernel_parameters(int layer, const KernelSpec& kernel) const override {
    return kernels_.find(layer, kernel);
  }
  at::Tensor attention_output_weight(int layer) const override {
    const std::optional<TensorView>& wo = opened_->layer(layer).wo;
    if (!wo)
      throw UsageError(info().name, fmt::format("the capture has no W_o of layer {}", layer),
                       "show the weights themselves, or record it: layers.I.wo");
    return placed_view(*wo, {});
  }
  std::vector<std::string> parameter_names() const override { return {}; }
  at::Tensor parameter(const std::string& name) const override {
    throw Error(info().name, fmt::format("has no parameter '{}'", name), no_model);
  }
  at::Device device() const override { return device_; }
  std::map<std::string, at::Tensor> tensors() const override {
    std::map<std::string, at::Tensor> all;
    kernels_.add_to(all);
    return all;
  }
  std::shared_ptr<const Model> with_parameters(const std::map<std::string, at::Tensor>& replacements,
                                               const std::vector<std::string>& labels,
                                               int /*image_size*/) const override {
    auto changed = std::make_shared<CaptureModel>(*this);
    for (const auto& [name, value] : replacements) {
      if (!name.starts_with("kernel.") || !labels.empty())
        throw Error(name, no_model, "give an adapter with the maps of kernels alone, as distill writes it");
      changed->kernels_.adopt(name, value, info());
    }
    return changed;
  }
  void require_files() const override {
    for (const SafetensorsFile& file : opened_->capture.files()) file.mapping()->require();
    Model::require_files();
  }
  const std::string& hash() const override { return hash_; }

  std::shared_ptr<CaptureModel> placed(at::Device device, at::ScalarType dtype) const {
    auto moved = std::make_shared<CaptureModel>(*this);
    moved->device_ = device;
    moved->dtype_ = dtype;
    std::map<std::string, at::Tensor> there;
    for (const auto& [name, tensor] : tensors()) there.emplace(name, tensor.to(device));
    for (const auto& [name, tensor] : there) moved->kernels_.adopt(name, tensor, info());
    return moved;
  }

  at::Tensor output(int layer) const {
    const CaptureLayer& one = opened_->layer(layer);
    if (!one.out) return {};
    const at::Tensor out = placed_view(*one.out, opened_->item);
    return one.queries == one.keys
               ? out
               : at::constant_pad_nd(out, {0, 0, 0, info().capture->tokens - one.queries});
  }

private:
  // Once for each layer: it reads the whole layer from the disk.
  void check_numbers(int layer) const {
    std::atomic<bool>& checked = (*checked_)[static_cast<std::size_t>(layer)];
    if (checked) return;
    opened_->capture.check_numbers(opened_->part.layers[static_cast<std::size_t>(layer)], opened_->item);
    checked = true;
  }

  // The tensor, or this sequence of it, where and as kernels want it; mapped where that is how it is stored.
  at::Tensor placed_view(const TensorView& view, std::optional<std::int64_t> item) const {
    at::Tensor whole = tensor_of(view, opened_->capture.file_of(view));
    if (item) whole = whole.narrow(0, *item, 1);
    return whole.to(device_, dtype_);
  }

  AttentionInput attention_input(int layer, const TokenLayout& layout) const {
    const CaptureLayer& one = opened_->layer(layer);
    const std::int64_t item = opened_->item;
    AttentionInput input;
    input.causal = one.causal;
    input.q = placed_view(one.q, item);
    // Kernels divide by √d: softmax(q kᵀ/√d) becomes softmax(scale · q kᵀ).
    const double factor = one.scale * std::sqrt(static_cast<double>(one.width));
    if (std::abs(factor - 1) > 1e-6) input.q = input.q * factor;
    const auto repeated = [&](const TensorView& view) {
      const at::Tensor placed = placed_view(view, item);
      const std::int64_t groups = one.heads / one.key_heads;
      return groups == 1 ? placed : placed.repeat_interleave(groups, 1);
    };
    input.k = repeated(one.k);
    input.v = repeated(one.v);
    if (one.queries == one.keys) {
      input.layout = layout;
      if (!one.mask.empty()) {
        const std::vector<std::int64_t> real = real_keys(one, item);
        at::Tensor mask = at::zeros({1, one.keys}, at::kBool);
        mask.index_fill_(1, at::tensor(real, at::kLong), true);
        if (static_cast<std::int64_t>(real.size()) < one.keys) input.mask = mask.to(device_);
      }
      return input;
    }
    if (!one.mask.empty()) {
      const at::Tensor real = at::tensor(real_keys(one, item), at::kLong).to(device_);
      input.k = input.k.index_select(2, real);
      input.v = input.v.index_select(2, real);
    }
    input.queries = one.queries;
    input.q = at::constant_pad_nd(input.q, {0, 0, 0, input.k.size(2)});
    input.k = at::constant_pad_nd(input.k, {0, 0, one.queries, 0});
    input.v = at::constant_pad_nd(input.v, {0, 0, one.queries, 0});
    return input;
  }

  std::shared_ptr<const Opened> opened_;
  std::shared_ptr<std::vector<std::atomic<bool>>> checked_; // by layer
  std::string hash_;
  KernelTensors kernels_;
  at::Device device_ = at::kCPU;
  at::ScalarType dtype_ = at::kFloat;
};

// FILE:PART:SEQUENCE of each sequence of a capture, of the part that has the layers of `like`.
std::vector<std::filesystem::path> sequences_of(const std::filesystem::path& named, const ModelInfo& like) {
  const std::optional<CaptureAddress> address = capture_address(named);
  if (!address)
    throw UsageError(named.string(), "is no capture", "name files that tools/capture.py has written");
  const Capture capture = Capture::open(address->path);
  const auto fits = [&](const CapturePart& part) {
    if (part.layers.size() != like.capture->layer_names.size()) return false;
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const CaptureLayer& layer = capture.layers()[part.layers[i]];
      if (layer.name != like.capture->layer_names[i] || layer.heads != like.heads ||
          layer.heads * layer.width != like.width ||
          (layer.queries != layer.keys) != (like.capture->queries > 0))
        return false;
    }
    return true;
  };
  const auto found = address->part.empty()
                         ? std::ranges::find_if(capture.parts(), fits)
                         : capture.parts().begin() + static_cast<std::ptrdiff_t>(part_of(capture, *address));
  if (found == capture.parts().end() || !fits(*found))
    throw UsageError(named.string(), "holds other layers than " + like.capture->file.string(),
                     "give captures of one model together");
  std::vector<std::filesystem::path> sequences;
  const std::int64_t batch = capture.layers()[found->layers.front()].batch;
  for (std::int64_t item = 0; item < batch; ++item)
    if (!address->has_item || item == address->item)
      sequences.emplace_back(
          fmt::format("{}:{}:{}", address->path.string(), found - capture.parts().begin(), item));
  return sequences;
}

const CaptureModel& capture_of(const Model& model) {
  const auto* const capture = dynamic_cast<const CaptureModel*>(&model);
  if (capture == nullptr) throw UsageError(model.info().name, "is a model, not a capture");
  return *capture;
}

} // namespace

ModelInfo read_capture_info(const std::filesystem::path& named) { return open_named(named).info; }

std::shared_ptr<const Model> load_capture(const std::filesystem::path& named) {
  return std::make_shared<const CaptureModel>(open_named(named));
}

std::vector<std::filesystem::path> capture_sequences(const std::vector<std::filesystem::path>& named,
                                                     const ModelInfo& like) {
  std::vector<std::filesystem::path> sequences;
  for (const std::filesystem::path& one : named) {
    std::vector<std::filesystem::path> captures{one};
    if (!capture_address(one) && std::filesystem::is_directory(one)) captures = captures_in(one);
    for (const std::filesystem::path& capture : captures) {
      const std::vector<std::filesystem::path> own = sequences_of(capture, like);
      sequences.insert(sequences.end(), own.begin(), own.end());
    }
    if (captures.empty())
      throw UsageError(one.string(), "the folder holds no capture",
                       "name files that tools/capture.py has written");
  }
  return sequences;
}

std::shared_ptr<const Model> placed_capture(const std::shared_ptr<const Model>& capture,
                                            const c10::Device device, const c10::ScalarType dtype) {
  return capture_of(*capture).placed(device, dtype);
}

at::Tensor recorded_output(const Model& capture, const int layer) {
  return capture_of(capture).output(layer);
}

} // namespace hydrascope
