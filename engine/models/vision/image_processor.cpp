#include "engine/models/vision/image_processor.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/image.h"

namespace hydrascope {
namespace {

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
int crop_start(int have, int want, bool torchvision) {
  const int difference = have - want;
  if (difference < 0) return torchvision ? -(-difference / 2) : -((-difference + 1) / 2);
  if (!torchvision) return difference / 2;
  return static_cast<int>(std::nearbyint(difference / 2.0));
}

int scaled(int length, double factor) { return std::max(1, static_cast<int>(std::lround(length * factor))); }

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
  if (own == 0) { // the picture's own size decided: now it must not
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

CroppedImage resize_and_crop(const Image& image, const ImageProcessor& processor) {
  if (image.width < 1 || image.height < 1) throw UsageError("picture", "is empty", "open another");
  const Size size = resized(image, processor);
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

} // namespace hydrascope
