#include "engine/training/data/augmentation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/image.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

// Independent random numbers for one copy of one picture.
class Draws {
public:
  Draws(const std::uint64_t key, const int copy) : key_(mix({key, static_cast<std::uint64_t>(copy)})) {}
  double between(const double low, const double high) { return low + (high - low) * unit(bits()); }
  std::uint64_t bits() { return mix({key_, next_++}); }

private:
  std::uint64_t key_, next_ = 0;
};

struct Box {
  int left = 0, top = 0, width = 0, height = 0;
};

// Ten attempts, then the whole picture, as torchvision.
Box random_box(const Image& image, const double smallest, Draws& draws) {
  const double area = static_cast<double>(image.width) * image.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = draws.between(smallest, 1.0);
    const double ratio = std::exp(draws.between(std::log(3.0 / 4.0), std::log(4.0 / 3.0)));
    const int width = static_cast<int>(std::lround(std::sqrt(area * share * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(area * share / ratio)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int left = static_cast<int>(draws.between(0, image.width - width + 1));
    const int top = static_cast<int>(draws.between(0, image.height - height + 1));
    return {left, top, width, height};
  }
  return {0, 0, image.width, image.height};
}

void mirror(Image& image) {
  for (int y = 0; y < image.height; ++y) {
    auto* row = &image.rgb[3 * static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width)];
    for (int left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + 3 * left, row + 3 * left + 3, row + 3 * right);
  }
}

// ITU-R 601 luma, as PIL's grey.
double grey(const double* rgb) { return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]; }

// Brightness, contrast and saturation by factors within 1 ± jitter, in a random order.
void change_colors(Image& image, const double jitter, Draws& draws) {
  std::vector<double> values(image.rgb.begin(), image.rgb.end());
  const auto blend = [&](const double factor, const auto& other) {
    for (std::size_t i = 0; i < values.size(); i += 3) {
      const double to = other(&values[i]);
      for (std::size_t c = i; c < i + 3; ++c)
        values[c] = std::clamp(factor * values[c] + (1 - factor) * to, 0.0, 255.0);
    }
  };
  for (const std::int64_t change : shuffled(3, draws.bits())) {
    const double factor = draws.between(1 - jitter, 1 + jitter);
    if (change == 0) {
      blend(factor, [](const double*) { return 0.0; });
    } else if (change == 1) {
      double mean = 0;
      for (std::size_t i = 0; i < values.size(); i += 3)
        mean += grey(&values[i]) * 3 / static_cast<double>(values.size());
      blend(factor, [mean](const double*) { return mean; });
    } else {
      blend(factor, grey);
    }
  }
  std::ranges::transform(values, image.rgb.begin(),
                         [](const double value) { return static_cast<std::uint8_t>(std::lround(value)); });
}

} // namespace

Image augmented_copy(const Image& image, const int copy, const int side, const Augmentation& augmentation,
                     const std::uint64_t key) {
  if (copy == 0) return image;
  Draws draws(key, copy);
  const Box box = random_box(image, augmentation.smallest_crop, draws);
  Image part = crop(image, box.left, box.top, box.width, box.height);
  if (augmentation.flip && draws.between(0, 1) < 0.5) mirror(part);
  // Before resizing: fewer pixels, and the same colours.
  if (augmentation.color_jitter > 0) change_colors(part, augmentation.color_jitter, draws);
  return resample(part, side, side, Filter::bicubic);
}

} // namespace hydrascope::training
