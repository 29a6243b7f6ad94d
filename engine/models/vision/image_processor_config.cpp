#include <cmath>
#include <map>

#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/models/vision/image_processor.h"

namespace hydrascope {
namespace {

constexpr std::array<double, 3> half{0.5, 0.5, 0.5};
constexpr std::array<double, 3> imagenet_mean{0.485, 0.456, 0.406};
constexpr std::array<double, 3> imagenet_deviation{0.229, 0.224, 0.225};
constexpr std::array<double, 3> clip_mean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> clip_deviation{0.26862954, 0.26130258, 0.27577711};

// What a processor class of transformers takes for fields that its file leaves out.
struct ClassDefaults {
  ImageProcessor values;
  bool integer_is_square = true; // what a plain number as `size` means
};

ClassDefaults defaults_of(const std::string& type) {
  ClassDefaults defaults;
  ImageProcessor& values = defaults.values;
  if (type.starts_with("DeiT")) {
    values.exact = {256, 256};
    values.crop = {224, 224};
  } else if (type.starts_with("Bit") || type.starts_with("CLIP")) {
    values.shortest_edge = 224;
    values.crop = {224, 224};
    values.mean = clip_mean;
    values.deviation = clip_deviation;
    defaults.integer_is_square = false;
  } else if (type.starts_with("ConvNext")) {
    values.shortest_edge = 384;
    values.filter = Filter::bilinear;
    defaults.integer_is_square = false;
  } else { // ViTImageProcessor, and what is not known
    values.exact = {224, 224};
    values.filter = Filter::bilinear;
  }
  return defaults;
}

// Without a class name transformers goes by the model.
std::string processor_type(const ConfigFields& fields, const ModelConfig& config) {
  const std::string named = fields.text("image_processor_type", fields.text("feature_extractor_type", ""));
  if (!named.empty()) return named;
  return config.family == "dinov2" ? "Bit" : config.family == "vit" ? "ViT" : "DeiT";
}

// {"height","width"}, {"shortest_edge"}, a number, or [height, width].
void read_size(const ConfigFields& fields, bool integer_is_square, ImageProcessor& processor) {
  if (!fields.has("size")) return;
  processor.exact.reset();
  processor.shortest_edge.reset();
  if (!fields.value("size").is_object()) {
    if (fields.value("size").is_array() || integer_is_square)
      processor.exact = fields.size("size", 1, largest_side);
    else
      processor.shortest_edge = fields.whole("size", 1, largest_side);
    return;
  }
  const ConfigFields size = fields.object("size");
  if (size.has("height") && size.has("width"))
    processor.exact = {size.whole("height", 1, largest_side), size.whole("width", 1, largest_side)};
  else if (size.has("shortest_edge") && !size.has("longest_edge"))
    processor.shortest_edge = size.whole("shortest_edge", 1, largest_side);
  else
    throw Error(fields.file().string(), "size is of a kind that is not supported",
                "give height and width, or shortest_edge");
}

void read_crop(const ConfigFields& fields, ImageProcessor& processor) {
  if (fields.has("crop_size") && fields.value("crop_size").is_object()) {
    const ConfigFields crop = fields.object("crop_size");
    processor.crop = {crop.whole("height", 1, largest_side), crop.whole("width", 1, largest_side)};
  } else if (fields.has("crop_size")) {
    processor.crop = fields.size("crop_size", 1, largest_side);
  }
}

// ConvNeXT's processor: below 384 pixels resize by 1/crop_pct and crop; from there on warp to a square.
void apply_crop_share(const ConfigFields& fields, const std::string& type, ImageProcessor& processor) {
  if (!type.starts_with("ConvNext") && !fields.has("crop_pct")) return;
  const double share = fields.real("crop_pct", 0.05, 1.0, 224.0 / 256);
  if (!processor.shortest_edge) return;
  const int side = *processor.shortest_edge;
  if (side < 384) {
    processor.shortest_edge = static_cast<int>(side / share);
    processor.crop = {side, side};
  } else {
    processor.shortest_edge.reset();
    processor.exact = {side, side};
  }
}

ImageProcessor from_file(const std::filesystem::path& file, const ModelConfig& config) {
  const ConfigFields fields = ConfigFields::of_file(file);
  const std::string type = processor_type(fields, config);
  ClassDefaults defaults = defaults_of(type);
  ImageProcessor processor = defaults.values;
  const bool crops_by_default = processor.crop.has_value();
  read_size(fields, defaults.integer_is_square, processor);
  read_crop(fields, processor);
  processor.filter = static_cast<Filter>(fields.whole("resample", 0, 5, static_cast<int>(processor.filter)));
  apply_crop_share(fields, type, processor);
  const bool by_share = type.starts_with("ConvNext") || fields.has("crop_pct");
  if (!fields.boolean("do_center_crop", crops_by_default || by_share)) processor.crop.reset();
  if (!fields.boolean("do_resize", true)) {
    processor.exact.reset();
    processor.shortest_edge.reset();
  }
  processor.rescale = fields.real("rescale_factor", -1e6, 1e6, 1.0 / 255);
  if (!fields.boolean("do_rescale", true)) processor.rescale.reset();
  processor.normalize = fields.boolean("do_normalize", true);
  processor.mean = fields.channels("image_mean", processor.mean);
  processor.deviation = fields.channels("image_std", processor.deviation);
  for (const double deviation : processor.deviation)
    if (!(std::abs(deviation) > 0) || !std::isfinite(deviation)) fields.refuse("image_std", "holds a zero");
  return processor;
}

ImageProcessor from_timm(const ModelConfig& config) {
  static const std::map<std::string, Filter> filters{
      {"nearest", Filter::nearest}, {"bilinear", Filter::bilinear}, {"bicubic", Filter::bicubic},
      {"lanczos", Filter::lanczos}, {"box", Filter::box},           {"hamming", Filter::hamming}};
  const TimmPreparation& timm = *config.timm;
  ImageProcessor processor;
  const int side = std::min(config.image_height, config.image_width);
  processor.shortest_edge = static_cast<int>(std::floor(side / timm.crop_fraction));
  processor.crop = {config.image_height, config.image_width};
  const auto filter = filters.find(timm.interpolation);
  processor.filter = filter == filters.end() ? Filter::bicubic : filter->second;
  processor.torchvision_crop = true;
  processor.mean = timm.mean;
  processor.deviation = timm.deviation;
  return processor;
}

ImageProcessor of_family(const ModelConfig& config) {
  ImageProcessor processor;
  processor.shortest_edge = std::min(config.image_height, config.image_width);
  processor.crop = {config.image_height, config.image_width};
  processor.mean = config.family == "vit" ? half : imagenet_mean;
  processor.deviation = config.family == "vit" ? half : imagenet_deviation;
  return processor;
}

} // namespace

ImageProcessor read_image_processor(const std::filesystem::path& folder, const ModelConfig& config) {
  const auto file = folder / "preprocessor_config.json";
  if (std::filesystem::exists(file)) return from_file(file, config);
  return config.timm ? from_timm(config) : of_family(config);
}

} // namespace hydrascope
