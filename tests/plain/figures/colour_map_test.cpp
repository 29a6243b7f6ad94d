#include "engine/figures/colour_map.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

constexpr ColourMap all_maps[] = {ColourMap::viridis, ColourMap::magma, ColourMap::cividis,
                                  ColourMap::blue_white_red};

// CIE L* of a table's entry, from sRGB.
double lightness(const std::array<std::uint8_t, 3>& colour) {
  const auto linear = [](std::uint8_t channel) {
    const double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  const double y = 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
  return y > 0.008856 ? 116 * std::cbrt(y) - 16 : 903.3 * y;
}

TEST(ColourMap, EndsAreThePublishedOnes) {
  using Entry = std::array<std::uint8_t, 3>;
  EXPECT_EQ(colour_table(ColourMap::viridis)[0], (Entry{68, 1, 84}));
  EXPECT_EQ(colour_table(ColourMap::viridis)[255], (Entry{253, 231, 37}));
  EXPECT_EQ(colour_table(ColourMap::magma)[0], (Entry{0, 0, 4}));
  EXPECT_EQ(colour_table(ColourMap::magma)[255], (Entry{252, 253, 191}));
  EXPECT_EQ(colour_table(ColourMap::cividis)[0], (Entry{0, 34, 78}));
}

TEST(ColourMap, SequentialMapsGrowLighter) {
  for (const auto map : {ColourMap::viridis, ColourMap::magma, ColourMap::cividis}) {
    const auto table = colour_table(map);
    for (std::size_t entry = 8; entry < 256; entry += 8) {
      EXPECT_GT(lightness(table[entry]), lightness(table[entry - 8])) << colour_map_name(map) << " " << entry;
    }
  }
}

TEST(ColourMap, ZeroOfTheSignedMapIsExactlyWhite) {
  const Colour zero = colour_of(ColourMap::blue_white_red, 0.5f);
  EXPECT_EQ(zero.red, 1.0f);
  EXPECT_EQ(zero.green, 1.0f);
  EXPECT_EQ(zero.blue, 1.0f);
}

TEST(ColourMap, BothSignsAreEquallyLightAtEqualDistance) {
  const auto table = colour_table(ColourMap::blue_white_red);
  for (std::size_t distance = 0; distance < 128; ++distance) {
    EXPECT_NEAR(lightness(table[127 - distance]), lightness(table[128 + distance]), 4.0) << distance;
  }
  EXPECT_GT(table[0][2], table[0][0]) << "negative is blue";
  EXPECT_GT(table[255][0], table[255][2]) << "positive is red";
}

TEST(ColourMap, ValuesAreClampedAndNaNIsGrey) {
  for (const auto map : all_maps) {
    EXPECT_EQ(colour_of(map, -3.0f).red, colour_of(map, 0.0f).red);
    EXPECT_EQ(colour_of(map, 7.0f).blue, colour_of(map, 1.0f).blue);
    const Colour unknown = colour_of(map, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(unknown.red, unknown.green);
    EXPECT_EQ(unknown.green, unknown.blue);
  }
}

TEST(KernelColour, KernelsThatAreComparedDiffer) {
  const char* const names[] = {"softmax", "sdpa",   "hydra-cosine", "hedgehog",
                               "elu",     "taylor", "performer",    "cosformer"};
  for (const char* const first : names) {
    for (const char* const second : names) {
      if (std::string_view(first) == second) continue;
      const Colour a = kernel_colour(first), b = kernel_colour(second);
      EXPECT_GT(std::abs(a.red - b.red) + std::abs(a.green - b.green) + std::abs(a.blue - b.blue), 0.15f)
          << first << " and " << second;
    }
  }
}

} // namespace
} // namespace hydrascope
