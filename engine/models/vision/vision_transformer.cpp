// ViT, DeiT (with and without a distilled head) and DINOv2: one forward pass, which differs by the
// configuration and by the parameters in the checkpoint. Follows transformers' modeling_vit, modeling_deit
// and modeling_dinov2.
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/transformer/encoder.h"
#include "engine/models/vision/image_processor.h"

namespace hydrascope {
namespace {

// The trained grid of position embeddings.
struct Grid {
  std::int64_t rows, columns;
};
Grid trained_grid(const ModelConfig& config) {
  return {config.image_height / config.patch_height, config.image_width / config.patch_width};
}

ExpectedParameters vision_parameters(const ModelConfig& config) {
  ExpectedParameters expected;
  const std::int64_t width = config.width;
  const Grid grid = trained_grid(config);
  expected["embeddings.cls_token"] = {{1, 1, width}, true};
  if (has_distillation_token(config.prefix_tokens))
    expected["embeddings.distillation_token"] = {{1, 1, width}, true};
  expected["embeddings.position_embeddings"] = {{1, config.prefix_tokens + grid.rows * grid.columns, width},
                                                true};
  expected["embeddings.patch_embeddings.projection.weight"] = {
      {width, 3, config.patch_height, config.patch_width}, true};
  expected["embeddings.patch_embeddings.projection.bias"] = {{width}, true};
  expect_layers(config, expected);
  expected["layernorm.weight"] = {{width}, true};
  expected["layernorm.bias"] = {{width}, true};
  const bool distilled = config.family == "deit-distilled";
  const bool needed = config.architecture.find("ForImageClassification") != std::string::npos;
  const std::int64_t classes = config.labels.empty() ? -1 : config.classes;
  for (const char* head : {"cls_classifier", "distillation_classifier"}) {
    if (!distilled) break;
    expected[std::string(head) + ".weight"] = {{classes, width}, true};
    expected[std::string(head) + ".bias"] = {{classes}, true};
  }
  if (!distilled) {
    expected["classifier.weight"] = {{classes, config.family == "dinov2" ? 2 * width : width}, needed};
    expected["classifier.bias"] = {{classes}, needed};
  }
  return expected;
}

// Models of timm with no_embed_class, such as deit3, have positions of the patches alone: those of the first
// tokens become zeros.
Checkpoint with_prefix_positions(Checkpoint checkpoint, const ModelConfig& config) {
  const auto found = checkpoint.tensors.find("embeddings.position_embeddings");
  const Grid grid = trained_grid(config);
  if (found == checkpoint.tensors.end() || found->second.dim() != 3 ||
      found->second.size(1) != grid.rows * grid.columns)
    return checkpoint;
  const at::Tensor patches = found->second;
  const at::Tensor none =
      at::zeros({patches.size(0), config.prefix_tokens, patches.size(2)}, patches.options());
  found->second = at::cat({none, patches}, 1);
  return checkpoint;
}

class VisionTransformer final : public Encoder {
public:
  VisionTransformer(const ModelConfig& config, const std::filesystem::path& folder,
                    const Checkpoint& checkpoint)
      : Encoder(config, folder, checkpoint, vision_parameters(config)),
        processor_(std::make_shared<const ImageProcessor>(read_image_processor(folder, config))) {
    rebuild();
    if (processor_->output_size() > 0) set_default_size(processor_->output_size());
    processor_size_ = info().image_size;
  }

  ModelInput prepare_image(const Image& image, std::optional<int> image_size) const override {
    // Without a size of the caller or of an adapter, the processor's own size applies, which may not be
    // square.
    std::optional<int> requested = image_size;
    if (!requested && info().image_size != processor_size_) requested = info().image_size;
    const int smallest = std::max(config().patch_height, config().patch_width);
    const int side = requested.value_or(smallest);
    if (side < smallest)
      throw UsageError("image size", fmt::format("{} pixels are fewer than a patch has ({})", side, smallest),
                       "choose a multiple of the patch size");
    if (side > largest_side)
      throw UsageError("image size", fmt::format("{} is too large", side),
                       fmt::format("choose at most {} pixels", largest_side));
    ProcessedImage processed = process_image(image, *processor_, requested);
    ModelInput input;
    input.pixels = processed.pixels;
    input.layout = grid_layout(input.pixels);
    if (input.layout.rows < 1 || input.layout.columns < 1)
      throw UsageError("picture", "is smaller than a patch after pre-processing", "use a larger picture");
    // The model ignores pixels beyond the last whole patch: the box is that of the patches.
    const auto used = [](std::int64_t patches, int patch, std::int64_t pixels) {
      return static_cast<double>(patches * patch) / static_cast<double>(pixels);
    };
    input.crop = processed.crop;
    input.crop.height *= used(input.layout.rows, config().patch_height, input.pixels.size(2));
    input.crop.width *= used(input.layout.columns, config().patch_width, input.pixels.size(3));
    return input;
  }

  ModelInput with_hidden(ModelInput input, std::span<const std::int64_t> tokens) const override {
    const std::int64_t prefix = input.layout.prefix, columns = input.layout.columns;
    check_can_hide(tokens, prefix, prefix + input.layout.rows * columns);
    const std::int64_t height = config().patch_height, width = config().patch_width;
    input.pixels = input.pixels.clone(); // the prepared picture is shared
    for (const std::int64_t token : tokens) {
      const std::int64_t row = (token - prefix) / columns, column = (token - prefix) % columns;
      input.pixels.narrow(2, row * height, height).narrow(3, column * width, width).zero_();
    }
    return input;
  }

  at::Tensor embed(const ModelInput& input) const override {
    const at::Tensor& pixels = input.pixels;
    if (!pixels.defined() || pixels.dim() != 4 || pixels.size(1) != 3)
      throw UsageError(info().name, "takes a picture of three channels", "give a picture, not a text");
    const TokenLayout layout = grid_layout(pixels);
    if (layout.rows < 1 || layout.columns < 1)
      throw UsageError(info().name, "the picture is smaller than a patch", "use a larger size");
    const at::Tensor weight = find("embeddings.patch_embeddings.projection.weight");
    const at::Tensor patches = at::conv2d(pixels.to(weight.scalar_type()), weight,
                                          find("embeddings.patch_embeddings.projection.bias"),
                                          {config().patch_height, config().patch_width})
                                   .flatten(2)
                                   .transpose(1, 2);
    const std::int64_t batch = pixels.size(0);
    std::vector<at::Tensor> tokens{find("embeddings.cls_token").expand({batch, 1, config().width})};
    if (has_distillation_token(config().prefix_tokens))
      tokens.push_back(find("embeddings.distillation_token").expand({batch, 1, config().width}));
    tokens.push_back(patches);
    return at::cat(tokens, 1) + positions(layout.rows, layout.columns);
  }

  at::Tensor final_hidden(const at::Tensor& hidden) const override { return norm("layernorm")(hidden); }

  at::Tensor logits(const at::Tensor& hidden, const ModelInput&) const override {
    if (!head_->defined()) return {};
    const at::Tensor last = final_hidden(hidden);
    const at::Tensor class_token = last.select(1, 0);
    if (distilled_head_->defined())
      return ((*head_)(class_token) + (*distilled_head_)(last.select(1, 1))) / 2; // mean of two heads
    if (find("classifier.weight").size(1) == config().width) return (*head_)(class_token);
    const at::Tensor patches = last.narrow(1, config().prefix_tokens, last.size(1) - config().prefix_tokens);
    return (*head_)(at::cat({class_token, patches.mean(1)}, 1));
  }

protected:
  std::shared_ptr<Encoder> copy() const override { return std::make_shared<VisionTransformer>(*this); }
  void rebuild_ends() override { rebuild(); }
  TokenLayout layout_of(const ModelInput& input) const override {
    return input.layout.rows > 0 || !input.pixels.defined() ? input.layout : grid_layout(input.pixels);
  }
  std::int64_t tokens_read() const override {
    if (distilled_head_->defined()) return 2;
    return head_->defined() && find("classifier.weight").size(1) == config().width ? 1 : 0;
  }

private:
  void rebuild() {
    const bool distilled = has("cls_classifier.weight");
    const auto linear = [&](const std::string& name) {
      return has(name + ".weight") ? std::make_shared<const Linear>(std::vector<Linear::Part>{part(name)})
                                   : std::make_shared<const Linear>();
    };
    head_ = linear(distilled ? "cls_classifier" : "classifier");
    distilled_head_ = linear("distillation_classifier");
    const at::Tensor weight = find(distilled ? "cls_classifier.weight" : "classifier.weight");
    set_classes(weight.defined() ? weight.size(0) : 0);
  }

  TokenLayout grid_layout(const at::Tensor& pixels) const {
    return {config().prefix_tokens, pixels.size(2) / config().patch_height,
            pixels.size(3) / config().patch_width};
  }

  // (1,prefix + rows·columns,D): interpolated bicubically where the grid is not the trained one, without
  // antialiasing and in float32, as transformers' interpolate_pos_encoding does.
  at::Tensor positions(std::int64_t rows, std::int64_t columns) const {
    const at::Tensor all = find("embeddings.position_embeddings");
    const Grid trained = trained_grid(config());
    if (rows == trained.rows && columns == trained.columns) return all;
    const std::int64_t prefix = config().prefix_tokens;
    const at::Tensor grid = all.narrow(1, prefix, all.size(1) - prefix)
                                .reshape({1, trained.rows, trained.columns, config().width})
                                .permute({0, 3, 1, 2})
                                .to(at::kFloat);
    const at::Tensor resized = at::upsample_bicubic2d(grid, {rows, columns}, false)
                                   .permute({0, 2, 3, 1})
                                   .reshape({1, rows * columns, config().width})
                                   .to(all.scalar_type());
    return at::cat({all.narrow(1, 0, prefix), resized}, 1);
  }

  std::shared_ptr<const ImageProcessor> processor_;
  int processor_size_ = 0;                              // the processor's
  std::shared_ptr<const Linear> head_, distilled_head_; // shared by copies, so that packing happens once
};

} // namespace

std::shared_ptr<const Model> make_vision_transformer(const ModelConfig& config,
                                                     const std::filesystem::path& folder,
                                                     const Checkpoint& checkpoint) {
  ModelConfig completed = config; // timm's config.json does not say whether there is LayerScale
  completed.layer_scale = checkpoint.tensors.contains("encoder.layer.0.layer_scale1.lambda1");
  return std::make_shared<VisionTransformer>(
      completed, folder, config.timm ? with_prefix_positions(checkpoint, config) : checkpoint);
}

} // namespace hydrascope
