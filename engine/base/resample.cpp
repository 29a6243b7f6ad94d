// Resizing as Pillow does: a horizontal pass, then a vertical one, with 22-bit fixed-point weights, each pass
// rounded to 8 bits. Source: Pillow's src/libImaging/Resample.c.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "engine/base/image.h"

namespace hydrascope {
namespace {

constexpr int precision_bits = 32 - 8 - 2;

double sinc(double x) {
  if (x == 0.0) return 1.0;
  return std::sin(x * std::numbers::pi) / (x * std::numbers::pi);
}

double weight(Filter filter, double x) {
  const double distance = std::abs(x);
  switch (filter) {
    case Filter::nearest:
    case Filter::box: return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case Filter::bilinear: return distance < 1.0 ? 1.0 - distance : 0.0;
    case Filter::hamming:
      if (distance == 0.0) return 1.0;
      return distance < 1.0 ? sinc(distance) * (0.54 + 0.46 * std::cos(distance * std::numbers::pi)) : 0.0;
    case Filter::bicubic: {
      constexpr double a = -0.5;
      if (distance < 1.0) return ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1;
      return distance < 2.0 ? (((distance - 5) * distance + 8) * distance - 4) * a : 0.0;
    }
    case Filter::lanczos: return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
  }
  return 0.0;
}

double support_of(Filter filter) {
  switch (filter) {
    case Filter::nearest:
    case Filter::box: return 0.5;
    case Filter::bilinear:
    case Filter::hamming: return 1.0;
    case Filter::bicubic: return 2.0;
    case Filter::lanczos: return 3.0;
  }
  return 1.0;
}

// The input pixels and fixed-point weights of one output position.
struct Taps {
  int first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Taps> taps_of(int from, int to, Filter filter) {
  const double scale = static_cast<double>(from) / to;
  const double filter_scale = std::max(scale, 1.0);
  const double support = support_of(filter) * filter_scale;
  std::vector<Taps> result(static_cast<std::size_t>(to));
  std::vector<double> exact;
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), from);
    exact.clear();
    double sum = 0.0;
    for (int x = first; x < last; ++x) {
      exact.push_back(weight(filter, (x - center + 0.5) * (1.0 / filter_scale)));
      sum += exact.back();
    }
    Taps& taps = result[static_cast<std::size_t>(i)];
    taps.first = first;
    for (double w : exact) {
      if (sum != 0.0) w /= sum;
      taps.weights.push_back(static_cast<std::int32_t>((w < 0 ? -0.5 : 0.5) + w * (1 << precision_bits)));
    }
  }
  return result;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> precision_bits, 0, 255));
}

Image horizontally(const Image& image, int width, Filter filter) {
  Image result{width, image.height, {}};
  const auto columns = static_cast<std::size_t>(width);
  result.rgb.resize(3 * columns * static_cast<std::size_t>(image.height));
  const std::vector<Taps> all = taps_of(image.width, width, filter);
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row =
        image.rgb.data() + 3 * static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width);
    std::uint8_t* out = result.rgb.data() + 3 * static_cast<std::size_t>(y) * columns;
    for (const Taps& taps : all) {
      std::int32_t sums[3] = {1 << (precision_bits - 1), 1 << (precision_bits - 1),
                              1 << (precision_bits - 1)};
      const std::uint8_t* pixel = row + 3 * static_cast<std::size_t>(taps.first);
      for (const std::int32_t w : taps.weights) {
        for (int c = 0; c < 3; ++c) sums[c] += pixel[c] * w;
        pixel += 3;
      }
      for (const std::int32_t sum : sums) *out++ = rounded(sum);
    }
  }
  return result;
}

Image vertically(const Image& image, int height, Filter filter) {
  Image result{image.width, height, {}};
  const std::size_t stride = 3 * static_cast<std::size_t>(image.width);
  result.rgb.resize(stride * static_cast<std::size_t>(height));
  std::vector<std::int32_t> sums(stride);
  std::uint8_t* out = result.rgb.data();
  for (const Taps& taps : taps_of(image.height, height, filter)) {
    std::fill(sums.begin(), sums.end(), 1 << (precision_bits - 1));
    const std::uint8_t* row = image.rgb.data() + stride * static_cast<std::size_t>(taps.first);
    for (const std::int32_t w : taps.weights) {
      for (std::size_t i = 0; i < stride; ++i) sums[i] += row[i] * w;
      row += stride;
    }
    for (const std::int32_t sum : sums) *out++ = rounded(sum);
  }
  return result;
}

// The source position of every output position, accumulated as Pillow's affine transform does.
std::vector<int> nearest_positions(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  double position = scale * 0.5;
  std::vector<int> result;
  for (int i = 0; i < to; ++i, position += scale)
    result.push_back(std::min(static_cast<int>(position), from - 1));
  return result;
}

Image nearest(const Image& image, int width, int height) {
  Image result{width, height, {}};
  result.rgb.reserve(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  const std::vector<int> columns = nearest_positions(image.width, width);
  for (const int y : nearest_positions(image.height, height)) {
    for (const int x : columns) {
      const auto at = image.rgb.begin() + 3 * (std::ptrdiff_t{y} * image.width + x);
      result.rgb.insert(result.rgb.end(), at, at + 3);
    }
  }
  return result;
}

} // namespace

Image resample(const Image& image, int width, int height, Filter filter) {
  if (filter == Filter::nearest) return nearest(image, width, height);
  const Image wide = width == image.width ? image : horizontally(image, width, filter);
  return height == wide.height ? wide : vertically(wide, height, filter);
}

} // namespace hydrascope
