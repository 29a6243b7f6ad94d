#include "engine/measure/flops.h"

#include <map>

#include <fmt/format.h>

#include "engine/attention/interface/kernel.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr double norm_per_element = 5; // as the paper's counter has it: mean, variance, scale, shift
constexpr double channels = 3;

// What a kernel costs within one layer.
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
  flops.attention_counted = info.family == "hydra" ? 0 : flops.attention;
  const double elements = rows * static_cast<double>(shape.heads * shape.head_width);
  if (info.uses_query_projection)
    flops.query_products = elements * static_cast<double>(shape.heads * shape.head_width);
  if (info.trainable && kernel->initial_parameters(shape.heads, shape.head_width).contains("norm.weight"))
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
                             .layout = layout};
  const auto rows = static_cast<double>(tokens);
  const double width = architecture.width;
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
         .projections = kernel.query_products + 3 * rows * width * width,
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

} // namespace hydrascope
