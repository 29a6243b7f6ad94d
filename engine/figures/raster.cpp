#include "engine/figures/raster.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/figures/cairo_canvas.h"
#include "engine/figures/scale.h"

namespace hydrascope {
namespace {

constexpr std::int64_t wanted_side = 600;

// Values of a map by cell; beyond its edges those at the edge.
double value_at(const Array& values, std::int64_t row, std::int64_t column) {
  const auto rows = values.extent(0), columns = values.extent(1);
  const auto index =
      std::clamp<std::int64_t>(row, 0, rows - 1) * columns + std::clamp<std::int64_t>(column, 0, columns - 1);
  return static_cast<double>(values.values[static_cast<std::size_t>(index)]);
}

// NaN neighbours make the result NaN: a masked cell is never filled by interpolation.
double bilinear(const Array& values, double row, double column) {
  row = std::clamp(row, 0.0, static_cast<double>(values.extent(0) - 1));
  column = std::clamp(column, 0.0, static_cast<double>(values.extent(1) - 1));
  const auto top = static_cast<std::int64_t>(row), left = static_cast<std::int64_t>(column);
  const double down = row - static_cast<double>(top), across = column - static_cast<double>(left);
  const auto at = [&](std::int64_t r, std::int64_t c) { return value_at(values, r, c); };
  const double upper = across > 0 ? at(top, left) * (1 - across) + at(top, left + 1) * across : at(top, left);
  if (down <= 0) {
    return upper;
  }
  const double lower =
      across > 0 ? at(top + 1, left) * (1 - across) + at(top + 1, left + 1) * across : at(top + 1, left);
  return upper * (1 - down) + lower * down;
}

// Weights of the four cells around a point that lies `part` of the way from the second to the third.
std::array<double, 4> catmull_rom(double part) {
  const double square = part * part, cube = square * part;
  return {-0.5 * part + square - 0.5 * cube, 1 - 2.5 * square + 1.5 * cube,
          0.5 * part + 2 * square - 1.5 * cube, -0.5 * square + 0.5 * cube};
}

double bicubic(const Array& values, double row, double column) {
  const double top = std::floor(row), left = std::floor(column);
  const auto down = catmull_rom(row - top), across = catmull_rom(column - left);
  double sum = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) {
      sum += down[r] * across[c] *
             value_at(values, static_cast<std::int64_t>(top) + static_cast<std::int64_t>(r) - 1,
                      static_cast<std::int64_t>(left) + static_cast<std::int64_t>(c) - 1);
    }
  }
  // Beside a masked cell fewer neighbours have to do, so that it makes no larger hole than itself.
  return std::isnan(sum) ? bilinear(values, row, column) : sum;
}

double between_cells(const Array& values, double row, double column, Interpolation interpolation) {
  return interpolation == Interpolation::bicubic ? bicubic(values, row, column)
                                                 : bilinear(values, row, column);
}

void set_pixel(std::uint8_t* target, const Scale& scale, double value, float opacity) {
  if (std::isnan(value)) {
    return; // stays transparent
  }
  const Colour colour = scale_colour(scale, value);
  const auto byte = [](float channel) { return static_cast<std::uint8_t>(std::lround(channel * 255)); };
  target[0] = byte(colour.red);
  target[1] = byte(colour.green);
  target[2] = byte(colour.blue);
  target[3] = byte(opacity);
}

} // namespace

Pixels map_pixels(const Array& values, const Scale& scale, float opacity, Interpolation interpolation) {
  const bool smooth = interpolation != Interpolation::nearest;
  const auto rows = values.extent(0), columns = values.extent(1);
  const auto longer = std::max(rows, columns);
  const auto factor = std::max<std::int64_t>(1, (wanted_side + longer - 1) / longer);
  const auto height = rows * factor, width = columns * factor;
  Pixels pixels{static_cast<int>(width), static_cast<int>(height), {}};
  pixels.rgba.resize(static_cast<std::size_t>(width * height * 4));
  const auto centre = [&](std::int64_t pixel) {
    return (static_cast<double>(pixel) + 0.5) / static_cast<double>(factor) - 0.5;
  };
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* const line = pixels.rgba.data() + y * width * 4;
    if (!smooth && y % factor != 0) {
      std::copy_n(line - width * 4, width * 4, line); // the same cells as in the line above
      continue;
    }
    for (std::int64_t x = 0; x < width; ++x) {
      const auto cell = static_cast<std::size_t>(y / factor * columns + x / factor);
      set_pixel(line + x * 4, scale,
                smooth ? between_cells(values, centre(y), centre(x), interpolation)
                       : static_cast<double>(values.values[cell]),
                opacity);
    }
  }
  return pixels;
}

Pixels photograph_pixels(const Image& image, int most_pixels) {
  Pixels pixels{image.width, image.height, {}};
  pixels.rgba.reserve(image.rgb.size() / 3 * 4);
  for (std::size_t position = 0; position + 2 < image.rgb.size(); position += 3) {
    pixels.rgba.insert(pixels.rgba.end(),
                       {image.rgb[position], image.rgb[position + 1], image.rgb[position + 2], 255});
  }
  const int longer = std::max(image.width, image.height);
  if (longer <= most_pixels) {
    return pixels;
  }
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(1.0 * side * most_pixels / longer)));
  };
  return shrink(pixels, scaled(image.width), scaled(image.height));
}

} // namespace hydrascope
