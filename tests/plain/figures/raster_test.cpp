#include "engine/figures/panel_drawing.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/figures/scale.h"

namespace hydrascope {
namespace {

const Scale grey{ColourMap::cividis, 0, 1, false, false, {}};

MapPaint paint(Interpolation interpolation) {
  return {.colours = colour_table(grey.map), .interpolation = interpolation};
}

// A map of one row: 8 cells become 600 pixels, 75 a cell, the 38th of them at the cell's centre.
Array row_of(std::vector<float> values) {
  return {{1, static_cast<std::int64_t>(values.size())}, std::move(values)};
}
constexpr int a_cell = 75;
int pixel_at(double cell) { return static_cast<int>(std::lround((cell + 0.5) * a_cell - 0.5)); }

std::array<int, 4> pixel(const Pixels& pixels, int x) {
  const auto at = static_cast<std::size_t>(x) * 4;
  return {pixels.rgba[at], pixels.rgba[at + 1], pixels.rgba[at + 2], pixels.rgba[at + 3]};
}

std::array<int, 4> colour_of(double value) {
  const Colour colour = colour_at(colour_table(grey.map), scale_position(grey, value));
  const auto byte = [](float channel) { return static_cast<int>(std::lround(channel * 255)); };
  return {byte(colour.red), byte(colour.green), byte(colour.blue), 255};
}

TEST(Raster, BicubicGoesThroughEveryCell) {
  const std::vector<float> values = {0.1F, 0.9F, 0.3F, 0.3F, 0.8F, 0.2F, 0.6F, 0.5F};
  const Pixels pixels = map_pixels(row_of(values), grey, paint(Interpolation::bicubic));
  ASSERT_EQ(pixels.width, 600);
  for (std::size_t cell = 0; cell < values.size(); ++cell)
    EXPECT_EQ(pixel(pixels, pixel_at(static_cast<double>(cell))),
              colour_of(static_cast<double>(values[cell])))
        << cell;
}

TEST(Raster, BicubicIsCatmullRom) {
  const Array step = row_of({0, 0, 0, 0, 1, 1, 1, 1});
  const Pixels bicubic = map_pixels(step, grey, paint(Interpolation::bicubic));
  const Pixels bilinear = map_pixels(step, grey, paint(Interpolation::bilinear));
  // 11/75 of the way from the fourth to the fifth cell: w₂ + w₃ by hand.
  const double part = 11.0 / 75, square = part * part, cube = square * part;
  const double by_hand = (0.5 * part + 2 * square - 1.5 * cube) + (-0.5 * square + 0.5 * cube);
  EXPECT_EQ(pixel(bicubic, pixel_at(3 + part)), colour_of(by_hand));
  EXPECT_EQ(pixel(bilinear, pixel_at(3 + part)), colour_of(part));
  EXPECT_NE(pixel(bicubic, pixel_at(3 + part)), pixel(bilinear, pixel_at(3 + part)));
  // Where it would fall below the scale it has the scale's end.
  EXPECT_EQ(pixel(bicubic, pixel_at(2.6)), colour_of(0));
}

TEST(Raster, BicubicKeepsStraightLinesStraight) {
  const Array line = row_of({0, 0.125F, 0.25F, 0.375F, 0.5F, 0.625F, 0.75F, 0.875F});
  const Pixels pixels = map_pixels(line, grey, paint(Interpolation::bicubic));
  for (const double cell : {1.2, 2.36, 3.8, 5.04})
    EXPECT_EQ(pixel(pixels, pixel_at(cell)),
              colour_of((static_cast<double>(pixel_at(cell)) + 0.5) / a_cell / 8 - 0.0625));
}

TEST(Raster, WhereNothingContributesNothingIsPainted) {
  MapPaint growing = paint(Interpolation::nearest);
  growing.opacity = 0.8f;
  growing.growing = true;
  const Pixels pixels = map_pixels(row_of({0, 0.5F, 1, 0, 0, 0, 0, 0}), grey, growing);
  EXPECT_EQ(pixel(pixels, 0)[3], 0);
  EXPECT_EQ(pixel(pixels, 1)[3], 144); // 0.8 · √0.5 of 255
  EXPECT_EQ(pixel(pixels, 2)[3], 204);
  const MapPaint even{.colours = growing.colours, .opacity = 0.8f};
  EXPECT_EQ(pixel(map_pixels(row_of({0, 0.5F, 1, 0, 0, 0, 0, 0}), grey, even), 0)[3], 204);
}

TEST(Raster, WithoutInterpolationACellIsAPixelThatFilesRepeat) {
  const Array values = row_of({0, 1, 0.5F});
  const Pixels cells = map_pixels(values, grey, paint(Interpolation::nearest));
  EXPECT_EQ(cells.width, 3);
  EXPECT_EQ(cells.height, 1);
  const Pixels large = repeated(cells);
  EXPECT_EQ(large.width, 600);
  EXPECT_EQ(large.height, 200);
  for (const int x : {0, 199, 200, 399, 400, 599})
    for (const int y : {0, 199}) EXPECT_EQ(pixel(large, y * 600 + x), pixel(cells, x / 200));
}

TEST(Raster, TheLargestCellIsThatOfLargestMagnitude) {
  EXPECT_EQ(largest_cell({{2, 2}, {0.5F, -3, 2, std::nanf("")}}), (PanelItem{0, 1}));
  EXPECT_FALSE(largest_cell({{1, 2}, {0, 0}}).has_value());
}

TEST(Raster, AMaskedCellMakesNoLargerHoleThanWithBilinear) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  const Array values = row_of({0.5F, 0.5F, 0.5F, nothing, 0.5F, 0.5F, 0.5F, 0.5F});
  const Pixels bicubic = map_pixels(values, grey, paint(Interpolation::bicubic));
  const Pixels bilinear = map_pixels(values, grey, paint(Interpolation::bilinear));
  int holes = 0;
  for (int x = 0; x < bicubic.width; ++x) {
    EXPECT_EQ(pixel(bicubic, x)[3], pixel(bilinear, x)[3]) << x;
    holes += pixel(bicubic, x)[3] == 0 ? 1 : 0;
  }
  EXPECT_GT(holes, a_cell);
  EXPECT_LT(holes, 2 * a_cell);
}

} // namespace
} // namespace hydrascope
