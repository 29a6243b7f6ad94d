#include "engine/models/vision/image_processor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"

namespace hydrascope {
namespace {

constexpr std::int64_t most_pixels = std::int64_t{1} << 28; // as of a picture that is read

struct Size {
  int height, width;
};

Size resized(const Image& image, const ImageProcessor& processor) {
  if (processor.exact) return {(*processor.exact)[0], (*processor.exact)[1]};
  if (!processor.shortest_edge) return {image.height, image.width};
  const std::int64_t edge = *processor.shortest_edge;
  const std::int64_t other = edge * std::max(image.height, image.width) / std::min(image.height, image.width);
  // An extremely long strip: its long side alone would fill the memory.
  if (other > 32 * std::int64_t{largest_side})
    throw UsageError("picture", fmt::format("{} by {} pixels is too long a strip", image.width, image.height),
                     "crop it first");
  const int long_side = static_cast<int>(other);
  const int short_side = static_cast<int>(edge);
  return image.width <= image.height ? Size{long_side, short_side} : Size{short_side, long_side};
}

// The crop's first row or column within the picture: negative where the picture is smaller. transformers
// rounds down inside and pads the larger half before; torchvision rounds halves to even.
int crop_start(int size, int crop, bool torchvision) {
  const int difference = size - crop;
  if (difference < 0) return torchvision ? -(-difference / 2) : -((-difference + 1) / 2);
  if (!torchvision) return difference / 2;
  return static_cast<int>(std::nearbyint(difference / 2.0));
}

int scaled(int length, double factor) { return std::max(1, static_cast<int>(std::lround(length * factor))); }

constexpr std::array<double, 3> half{0.5, 0.5, 0.5};
constexpr std::array<double, 3> imagenet_mean{0.485, 0.456, 0.406};
constexpr std::array<double, 3> imagenet_deviation{0.229, 0.224, 0.225};
constexpr std::array<double, 3> clip_mean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> clip_deviation{0.26862954, 0.26130258, 0.27577711};

// Defaults of a processor class of transformers for missing fields.
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

// Without a class name, transformers chooses by the model.
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
      processor.shortest_edge = fields.integer("size", 1, largest_side);
    return;
  }
  const ConfigFields size = fields.object("size");
  if (size.has("height") && size.has("width"))
    processor.exact = {size.integer("height", 1, largest_side), size.integer("width", 1, largest_side)};
  else if (size.has("shortest_edge") && !size.has("longest_edge"))
    processor.shortest_edge = size.integer("shortest_edge", 1, largest_side);
  else
    throw Error(fields.file().string(), "size is of a kind that is not supported",
                "give height and width, or shortest_edge");
}

void read_crop(const ConfigFields& fields, ImageProcessor& processor) {
  if (fields.has("crop_size") && fields.value("crop_size").is_object()) {
    const ConfigFields crop = fields.object("crop_size");
    processor.crop = {crop.integer("height", 1, largest_side), crop.integer("width", 1, largest_side)};
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
  processor.filter =
      static_cast<Filter>(fields.integer("resample", 0, 5, static_cast<int>(processor.filter)));
  apply_crop_share(fields, type, processor);
  const bool by_share = type.starts_with("ConvNext") || fields.has("crop_pct");
  if (!fields.boolean("do_center_crop", crops_by_default || by_share)) processor.crop.reset();
  if (!fields.boolean("do_resize", true)) {
    processor.exact.reset();
    processor.shortest_edge.reset();
  }
  processor.grey = fields.boolean("do_grayscale", false);
  processor.rescale = fields.real("rescale_factor", -1e6, 1e6, 1.0 / 255);
  if (!fields.boolean("do_rescale", true)) processor.rescale.reset();
  processor.normalize = fields.boolean("do_normalize", true);
  processor.mean = fields.channels("image_mean", processor.mean);
  processor.deviation = fields.divisors("image_std", processor.deviation);
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

int ImageProcessor::output_size() const {
  if (crop) return std::min((*crop)[0], (*crop)[1]);
  if (exact) return std::min((*exact)[0], (*exact)[1]);
  return shortest_edge.value_or(0);
}

ImageProcessor ImageProcessor::with_size(int side) const {
  ImageProcessor result = *this;
  const int own = output_size();
  if (own == side) return result;
  if (own == 0) { // the processor keeps the picture's own size
    result.shortest_edge = side;
    result.crop = {side, side};
    return result;
  }
  const double factor = static_cast<double>(side) / own;
  for (auto* size : {&result.exact, &result.crop})
    if (*size) *size = {scaled((**size)[0], factor), scaled((**size)[1], factor)};
  if (result.shortest_edge) result.shortest_edge = scaled(*result.shortest_edge, factor);
  return result;
}

namespace {

void make_grey(Image& image) {
  for (std::size_t at = 0; at + 2 < image.rgb.size(); at += 3) {
    const std::uint32_t sum =
        19595U * image.rgb[at] + 38470U * image.rgb[at + 1] + 7471U * image.rgb[at + 2] + 32768U;
    const auto luminance = static_cast<std::uint8_t>(sum >> 16);
    image.rgb[at] = image.rgb[at + 1] = image.rgb[at + 2] = luminance;
  }
}

} // namespace

CroppedImage resize_and_crop(const Image& image, const ImageProcessor& processor) {
  if (image.width < 1 || image.height < 1) throw UsageError("picture", "is empty", "open another");
  const Size size = resized(image, processor);
  const auto check = [](const char* const verb, const std::int64_t height, const std::int64_t width) {
    if (height * width > most_pixels)
      throw UsageError("picture", fmt::format("would be {} to {} by {} pixels", verb, width, height),
                       "set a smaller --image-size, or correct preprocessor_config.json");
  };
  check("resized", size.height, size.width);
  if (processor.crop) check("cropped", (*processor.crop)[0], (*processor.crop)[1]);
  CroppedImage result;
  result.image = size.width == image.width && size.height == image.height
                     ? image
                     : resample(image, size.width, size.height, processor.filter);
  const double across = static_cast<double>(image.width) / size.width;
  const double down = static_cast<double>(image.height) / size.height;
  int top = 0;
  int left = 0;
  Size shown = size;
  if (processor.crop) {
    shown = {(*processor.crop)[0], (*processor.crop)[1]};
    top = crop_start(size.height, shown.height, processor.torchvision_crop);
    left = crop_start(size.width, shown.width, processor.torchvision_crop);
    result.image = crop(result.image, left, top, shown.width, shown.height);
  }
  result.box = {left * across, top * down, shown.width * across, shown.height * down};
  if (processor.grey) make_grey(result.image);
  return result;
}

ProcessedImage process_image(const Image& image, const ImageProcessor& processor, std::optional<int> side) {
  const ImageProcessor effective = side ? processor.with_size(*side) : processor;
  const CroppedImage cropped = resize_and_crop(image, effective);
  const std::int64_t height = cropped.image.height;
  const std::int64_t width = cropped.image.width;
  ProcessedImage result;
  result.crop = cropped.box;
  result.pixels = at::empty({1, 3, height, width}, at::kFloat);
  auto* out = result.pixels.mutable_data_ptr<float>();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    // transformers rescales in double, rounds to float, and normalises in float.
    std::array<float, 256> table{};
    for (std::size_t value = 0; value < table.size(); ++value) {
      float x = effective.rescale ? static_cast<float>(static_cast<double>(value) * *effective.rescale)
                                  : static_cast<float>(value);
      if (effective.normalize)
        x = (x - static_cast<float>(effective.mean[channel])) /
            static_cast<float>(effective.deviation[channel]);
      table[value] = x;
    }
    const auto pixels = static_cast<std::size_t>(height * width);
    for (std::size_t i = 0; i < pixels; ++i) *out++ = table[cropped.image.rgb[3 * i + channel]];
  }
  return result;
}

ImageProcessor read_image_processor(const std::filesystem::path& folder, const ModelConfig& config) {
  const auto file = folder / "preprocessor_config.json";
  if (has_file(file)) return from_file(file, config);
  return config.timm ? from_timm(config) : of_family(config);
}

} // namespace hydrascope
