#include "engine/measure/flops.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
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

void read_image_sizes(const std::filesystem::path& folder, const ModelConfig& config, Architecture& made) {
  made.patch_height = config.patch_height;
  made.patch_width = config.patch_width;
  made.prefix_tokens = config.prefix_tokens;
  std::array<int, 2> size{config.image_height, config.image_width};
  const ImageProcessor processor = read_image_processor(folder, config);
  if (processor.crop)
    size = *processor.crop;
  else if (processor.exact)
    size = *processor.exact;
  // Pixels beyond the last whole patch are not used.
  made.image_height = size[0] - size[0] % made.patch_height;
  made.image_width = size[1] - size[1] % made.patch_width;
}

void add_head(const ModelConfig& config, bool has_classifier, Architecture& made) {
  const double width = config.width;
  if (config.causal) {
    made.token_head_products = width * config.vocabulary;
  } else if (config.architecture == "BertForMaskedLM" || config.architecture == "BertForPreTraining") {
    made.token_head_products = width * width + width * config.vocabulary;
    ++made.norms_outside_blocks;
  } else if (has_classifier) {
    const double classes = config.classes > 0 ? config.classes : 2; // transformers' default, if absent
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
  made.key_heads = config.key_heads;
  made.width = config.width;
  made.intermediate = config.intermediate;
  made.gated_mlp = config.gated_mlp;
  if (made.input == InputKind::image)
    read_image_sizes(folder, config, made);
  else
    made.tokens = config.max_positions;
  add_head(config, info.has_classifier, made);
  return made;
}

namespace {

constexpr double norm_per_element = 5; // as the paper's counter: mean, variance, scale, shift
constexpr double channels = 3;

// The cost of a kernel within one layer.
struct KernelFlops {
  double query_products = 0, attention = 0, attention_counted = 0, norms = 0;
};

KernelFlops kernel_flops(const KernelSpec& spec, const AttentionShape& shape, double rows) {
  const auto kernel = make_kernel(spec);
  const KernelInfo& info = kernel->info();
  if (const Support support = kernel->supports(shape); !support.ok)
    throw UsageError(spec.text(), support.reason, "choose another kernel or architecture");
  KernelFlops flops;
  flops.attention = kernel->cost(shape).multiply_accumulates;
  flops.attention_counted = info.implied_weights ? 0 : flops.attention;
  const double elements = rows * static_cast<double>(shape.heads * shape.head_width);
  if (info.uses_query_projection)
    flops.query_products = elements * static_cast<double>(shape.heads * shape.head_width);
  if (info.trainable && kernel->initial_parameters(heads_of(shape)).contains("norm.weight"))
    flops.norms = norm_per_element * elements;
  return flops;
}

Flops count(const Architecture& architecture, const TokenLayout& layout, std::int64_t tokens,
            const Schedule& schedule) {
  if (schedule.layers.size() != static_cast<std::size_t>(architecture.layers))
    throw UsageError("schedule", fmt::format("names {} layers", schedule.layers.size()),
                     fmt::format("{} has {}", architecture.name, architecture.layers));
  const AttentionShape shape{.heads = architecture.heads,
                             .tokens = tokens,
                             .head_width = architecture.width / architecture.heads,
                             .has_layer_input = true,
                             .key_heads = architecture.key_heads,
                             .layout = layout};
  const auto rows = static_cast<double>(tokens);
  const double width = architecture.width;
  const auto key_width = static_cast<double>(heads_of(shape).of_keys() * shape.head_width);
  const double norm = norm_per_element * rows * width;
  Flops flops;
  flops.tokens = tokens;
  flops.norms = architecture.norms_outside_blocks * norm;
  flops.head = architecture.head_products + architecture.token_head_products * rows;
  std::map<KernelSpec, KernelFlops> known; // few kernels, many layers
  for (const KernelSpec& spec : schedule.layers) {
    auto found = known.find(spec);
    if (found == known.end()) found = known.emplace(spec, kernel_flops(spec, shape, rows)).first;
    const KernelFlops& kernel = found->second;
    flops.layers.push_back(
        {.kernel = spec,
         .projections = kernel.query_products + rows * width * (2 * key_width + width),
         .attention = kernel.attention,
         .attention_counted = kernel.attention_counted,
         .mlp = (architecture.gated_mlp ? 3 : 2) * rows * width * architecture.intermediate,
         .norms = 2 * norm + kernel.norms});
  }
  return flops;
}

void check_side(const char* side, int pixels, int patch) {
  if (pixels >= patch && pixels % patch == 0) return;
  const int below = pixels - pixels % patch;
  const std::string remedy = below > 0 ? fmt::format("choose {} or {}", below, below + patch)
                                       : fmt::format("choose {} or a multiple of it", patch);
  throw UsageError(
      "--image-size",
      fmt::format("a {} of {} pixels is not a whole number of patches of {}", side, pixels, patch), remedy);
}

} // namespace

double Flops::total() const {
  double sum = embedding + head + norms;
  for (const LayerFlops& layer : layers) sum += layer.total();
  return sum;
}

double Flops::blocks() const {
  double sum = 0;
  for (const LayerFlops& layer : layers) sum += layer.blocks();
  return sum;
}

double Flops::attention_share() const {
  double attention = 0;
  for (const LayerFlops& layer : layers) attention += layer.attention;
  return attention / blocks();
}

Flops flops_of_image(const Architecture& architecture, int height, int width, const Schedule& schedule) {
  if (architecture.input != InputKind::image)
    throw UsageError("--image-size", fmt::format("{} reads text, not pictures", architecture.name),
                     "give --tokens");
  check_side("height", height, architecture.patch_height);
  check_side("width", width, architecture.patch_width);
  const TokenLayout layout{architecture.prefix_tokens, height / architecture.patch_height,
                           width / architecture.patch_width};
  const std::int64_t patches = layout.rows * layout.columns;
  Flops flops = count(architecture, layout, layout.prefix + patches, schedule);
  const double patch_pixels = static_cast<double>(architecture.patch_height) * architecture.patch_width;
  flops.embedding = static_cast<double>(patches) * channels * patch_pixels * architecture.width;
  return flops;
}

Flops flops_of_text(const Architecture& architecture, std::int64_t tokens, const Schedule& schedule) {
  if (architecture.input != InputKind::text)
    throw UsageError("--tokens", fmt::format("{} reads pictures, not text", architecture.name),
                     "give --image-size");
  if (tokens < 1) throw UsageError("--tokens", fmt::format("{} is not a length", tokens), "give at least 1");
  return count(architecture, {}, tokens, schedule);
}

namespace {

constexpr int paper_sides[] = {224, 384, 448, 1024, 1280};
constexpr int paper_back[] = {2, 7, 8}; // layers replaced from the back: tables 2 (2, 8) and 3 (2, 7)

} // namespace

std::string written_schedule(const ScheduleText& text) {
  std::vector<std::string> parts;
  if (text.kernel != ScheduleText{}.kernel || (text.replace.empty() && text.layers.empty()))
    parts.push_back(text.kernel);
  parts.insert(parts.end(), text.replace.begin(), text.replace.end());
  parts.insert(parts.end(), text.layers.begin(), text.layers.end());
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<ScheduleText> default_schedules(const Architecture& architecture) {
  const auto everywhere = [](const char* kernel) { return ScheduleText{.kernel = kernel}; };
  std::vector<ScheduleText> schedules{everywhere("softmax")};
  if (architecture.input == InputKind::text) {
    for (const char* kernel : {"local-window", "linear-cosine", "hydra-cosine", "elu", "hedgehog", "t2r",
                               "cosformer", "performer", "taylor"})
      schedules.push_back(everywhere(kernel));
    return schedules;
  }
  for (const int layers : paper_back)
    if (layers < architecture.layers)
      schedules.push_back({.replace = {fmt::format("back:{}=hydra-cosine", layers)}});
  for (const char* kernel : {"hydra-cosine", "poly-nl", "local-window"})
    schedules.push_back(everywhere(kernel));
  return schedules;
}

std::vector<InputSize> default_sizes(const Architecture& architecture) {
  constexpr int sentence = 128;
  if (architecture.input == InputKind::text) {
    std::vector<InputSize> sizes{{.tokens = std::min(sentence, architecture.tokens)}};
    if (architecture.tokens > sentence) sizes.push_back({.tokens = architecture.tokens});
    return sizes;
  }
  const int height = architecture.image_height, width = architecture.image_width;
  std::vector<InputSize> sizes;
  const bool whole_patches = height % architecture.patch_height == 0 && width % architecture.patch_width == 0;
  if (whole_patches && (height != width || std::ranges::find(paper_sides, height) == std::end(paper_sides)))
    sizes.push_back({.height = height, .width = width});
  for (const int side : paper_sides)
    if (side % architecture.patch_height == 0 && side % architecture.patch_width == 0)
      sizes.push_back({.height = side, .width = side});
  if (sizes.empty()) { // the patch size divides none: the whole patches within the own size
    const auto whole = [](int side, int patch) { return std::max(patch, side - side % patch); };
    sizes.push_back({.height = whole(height, architecture.patch_height),
                     .width = whole(width, architecture.patch_width)});
  }
  return sizes;
}

std::vector<FlopsRow> flops_table(const Architecture& architecture, const std::vector<InputSize>& sizes,
                                  const std::vector<ScheduleText>& schedules) {
  std::vector<FlopsRow> rows;
  for (const InputSize& size : sizes) {
    for (const ScheduleText& text : schedules) {
      const Schedule schedule = parse_schedule(text, architecture.layers);
      Flops flops = architecture.input == InputKind::text
                        ? flops_of_text(architecture, size.tokens, schedule)
                        : flops_of_image(architecture, size.height, size.width, schedule);
      rows.push_back({size, written_schedule(text), schedule.summary(), std::move(flops)});
    }
  }
  return rows;
}

} // namespace hydrascope
