#include "engine/measure/architecture.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/models/transformer/config.h"
#include "engine/models/vision/image_processor.h"

namespace hydrascope {
namespace {

constexpr double image_net_classes = 1000;

// Touvron et al. (2021), table 1: DeiT-Ti, S and B have the shape of ViT's sizes. Distilled ones have a
// second prefix token and a second head.
Architecture image_architecture(std::string name, int layers, int heads, int width, int patch,
                                bool distilled = false) {
  Architecture made;
  made.name = std::move(name);
  made.layers = layers;
  made.heads = heads;
  made.width = width;
  made.intermediate = 4 * width;
  made.patch_height = made.patch_width = patch;
  made.prefix_tokens = distilled ? 2 : 1;
  made.head_products = (distilled ? 2 : 1) * image_net_classes * width;
  return made;
}

// Oquab et al. (2023): the position table is that of 518 pixels, features are read at 224.
Architecture dino_architecture(std::string name, int layers, int heads, int width) {
  Architecture made = image_architecture(std::move(name), layers, heads, width, 14);
  made.head_products = 0;
  return made;
}

// Devlin et al. (2019), section 3, and sizes distilled from them.
Architecture text_architecture(std::string name, int layers, int heads, int width) {
  Architecture made;
  made.name = std::move(name);
  made.input = InputKind::text;
  made.layers = layers;
  made.heads = heads;
  made.width = width;
  made.intermediate = 4 * width;
  made.tokens = 512;
  return made;
}

void take_image_sizes(const std::filesystem::path& folder, const ModelConfig& config, Architecture& made) {
  made.patch_height = config.patch_height;
  made.patch_width = config.patch_width;
  made.prefix_tokens = config.prefix_tokens;
  std::array<int, 2> size{config.image_height, config.image_width};
  const ImageProcessor processor = read_image_processor(folder, config);
  if (processor.crop)
    size = *processor.crop;
  else if (processor.exact)
    size = *processor.exact;
  // Pixels beyond the last whole patch are never seen.
  made.image_height = size[0] - size[0] % made.patch_height;
  made.image_width = size[1] - size[1] % made.patch_width;
}

void take_head(const ModelConfig& config, bool has_classifier, Architecture& made) {
  const double width = config.width;
  if (config.architecture == "BertForMaskedLM" || config.architecture == "BertForPreTraining") {
    made.token_head_products = width * width + width * config.vocabulary;
    ++made.norms_outside_blocks;
  } else if (has_classifier) {
    const double classes = config.classes > 0 ? config.classes : 2; // transformers' default, left unsaid
    const double pooler = made.input == InputKind::text ? width * width : 0;
    const bool two_wide = config.family == "deit-distilled" || config.family == "dinov2";
    made.head_products = pooler + (two_wide ? 2 : 1) * classes * width;
  }
}

} // namespace

const std::vector<Architecture>& known_architectures() {
  static const std::vector<Architecture> known{
      image_architecture("deit-tiny", 12, 3, 192, 16),
      image_architecture("deit-small", 12, 6, 384, 16),
      image_architecture("deit-base", 12, 12, 768, 16),
      image_architecture("deit-tiny-distilled", 12, 3, 192, 16, true),
      image_architecture("deit-small-distilled", 12, 6, 384, 16, true),
      image_architecture("deit-base-distilled", 12, 12, 768, 16, true),
      image_architecture("vit-tiny", 12, 3, 192, 16),
      image_architecture("vit-small", 12, 6, 384, 16),
      image_architecture("vit-base", 12, 12, 768, 16),
      image_architecture("vit-large", 24, 16, 1024, 16),
      image_architecture("vit-huge", 32, 16, 1280, 14),
      dino_architecture("dinov2-small", 12, 6, 384),
      dino_architecture("dinov2-base", 12, 12, 768),
      dino_architecture("dinov2-large", 24, 16, 1024),
      text_architecture("bert-base", 12, 12, 768),
      text_architecture("bert-large", 24, 16, 1024),
      text_architecture("minilm", 6, 12, 384),
      text_architecture("minilm-l12", 12, 12, 384),
  };
  return known;
}

const Architecture& architecture_named(std::string_view name) {
  const std::vector<Architecture>& known = known_architectures();
  if (const auto found = std::ranges::find(known, name, &Architecture::name); found != known.end())
    return *found;
  std::vector<std::string> names;
  for (const Architecture& architecture : known) names.push_back(architecture.name);
  throw UsageError(
      "--architecture", fmt::format("there is no architecture \"{}\"", name),
      fmt::format("the nearest name is {}; known: {}", nearest_name(name, names), fmt::join(names, ", ")));
}

Architecture architecture_of_model(const std::filesystem::path& folder) {
  const ModelConfig config = read_config(folder);
  const ModelInfo info = info_of(config, folder);
  Architecture made;
  made.name = info.name;
  made.input = info.input;
  made.layers = config.layers;
  made.heads = config.heads;
  made.width = config.width;
  made.intermediate = config.intermediate;
  made.gated_mlp = config.gated_mlp;
  if (made.input == InputKind::image)
    take_image_sizes(folder, config, made);
  else
    made.tokens = config.max_positions;
  take_head(config, info.has_classifier, made);
  return made;
}

} // namespace hydrascope
