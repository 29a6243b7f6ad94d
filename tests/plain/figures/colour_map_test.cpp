#include "engine/figures/colour_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

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

constexpr Colour dark_ground{0.078f, 0.082f, 0.094f, 1}, light_ground{1, 1, 1, 1};

std::array<std::uint8_t, 3> bytes(const Colour& colour) {
  const auto byte = [](float channel) { return static_cast<std::uint8_t>(std::lround(channel * 255)); };
  return {byte(colour.red), byte(colour.green), byte(colour.blue)};
}

TEST(ColourMap, ZeroOfTheSignedMapIsTheGroundWhereThatIsDark) {
  for (const Backdrop backdrop : {Backdrop::matrix, Backdrop::words, Backdrop::photograph}) {
    const ColourTable table = colours_on(dark_ground, ColourMap::blue_white_red, backdrop);
    EXPECT_EQ(table[127], bytes(dark_ground));
    EXPECT_EQ(table[128], bytes(dark_ground));
    for (std::size_t step = 8; step < 128; step += 8) {
      EXPECT_GT(lightness(table[127 - step]), lightness(table[127 - step + 8]));
      EXPECT_GT(lightness(table[128 + step]), lightness(table[128 + step - 8]));
      EXPECT_NEAR(lightness(table[127 - step]), lightness(table[128 + step]), 6) << step;
    }
    EXPECT_GT(table[0][2], table[0][0]) << "blue below";
    EXPECT_GT(table[255][0], table[255][2]) << "red above";
    EXPECT_EQ(colours_on(light_ground, ColourMap::blue_white_red, backdrop),
              colour_table(ColourMap::blue_white_red));
  }
}

TEST(ColourMap, SequentialMapsStartAtALightGroundAndDarken) {
  for (const auto map : {ColourMap::viridis, ColourMap::magma, ColourMap::cividis}) {
    for (const Backdrop backdrop :
         {Backdrop::matrix, Backdrop::words, Backdrop::photograph, Backdrop::photograph_by_value}) {
      const ColourTable table = colours_on(light_ground, map, backdrop);
      EXPECT_EQ(table[0], bytes(light_ground));
      for (std::size_t entry = 8; entry < 256; entry += 8)
        EXPECT_LT(lightness(table[entry]), lightness(table[entry - 8]))
            << colour_map_name(map) << " " << entry;
    }
  }
}

// Where the opacity tells the size, the colour tells the sign, on any ground.
TEST(ColourMap, DifferencesOverAPhotographAreBlueOrRedFromZeroOn) {
  const ColourTable table = colours_on(dark_ground, ColourMap::blue_white_red, Backdrop::photograph_by_value);
  EXPECT_EQ(table, colours_on(light_ground, ColourMap::blue_white_red, Backdrop::photograph_by_value));
  for (std::size_t entry = 0; entry < 256; ++entry) {
    const int red = table[entry][0], blue = table[entry][2];
    EXPECT_GT(entry < 128 ? blue - red : red - blue, 60) << entry;
  }
}

TEST(ColourMap, ShadedWordsStartAtADarkGroundAndGrowLighter) {
  for (const auto map : {ColourMap::viridis, ColourMap::magma, ColourMap::cividis}) {
    const ColourTable table = colours_on(dark_ground, map, Backdrop::words);
    EXPECT_EQ(table[0], bytes(dark_ground));
    for (std::size_t entry = 8; entry < 256; entry += 8)
      EXPECT_GT(lightness(table[entry]), lightness(table[entry - 8])) << colour_map_name(map) << " " << entry;
    for (const Backdrop backdrop : {Backdrop::matrix, Backdrop::photograph, Backdrop::photograph_by_value})
      EXPECT_EQ(colours_on(dark_ground, map, backdrop), colour_table(map));
  }
}

TEST(ColourMap, OpacityGrowsWithTheMagnitude) {
  EXPECT_EQ(growing_opacity(ColourMap::magma, 0), 0);
  EXPECT_EQ(growing_opacity(ColourMap::magma, 1), 1);
  EXPECT_EQ(growing_opacity(ColourMap::blue_white_red, 0.5), 0);
  EXPECT_EQ(growing_opacity(ColourMap::blue_white_red, 0), 1);
  EXPECT_EQ(growing_opacity(ColourMap::blue_white_red, 1), 1);
  EXPECT_DOUBLE_EQ(growing_opacity(ColourMap::magma, 0.25), 0.5);
  EXPECT_DOUBLE_EQ(growing_opacity(ColourMap::blue_white_red, 0.625), 0.5);
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

using Channels = std::array<double, 3>;

Channels linear_channels(const Colour& colour) {
  const auto linear = [](float channel) {
    const auto value = static_cast<double>(channel);
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return {linear(colour.red), linear(colour.green), linear(colour.blue)};
}

Channels times(const std::array<Channels, 3>& matrix, const Channels& vector) {
  Channels product{};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column) product[row] += matrix[row][column] * vector[column];
  return product;
}

// CIELAB of linear sRGB, D65.
Channels lab(const Channels& rgb) {
  const Channels xyz =
      times({{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}}, rgb);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f(xyz[0] / 0.9505), y = f(xyz[1]), z = f(xyz[2] / 1.089);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// Machado, Oliveira and Fernandes (2009), severity 1.0: normal, deuteranopia, protanopia.
constexpr std::array<std::array<Channels, 3>, 3> visions = {
    {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}}};

double seen_difference(const Colour& left, const Colour& right, const std::array<Channels, 3>& vision) {
  const auto seen = [&](const Colour& colour) {
    Channels rgb = times(vision, linear_channels(colour));
    for (double& channel : rgb) channel = std::clamp(channel, 0.0, 1.0);
    return lab(rgb);
  };
  const Channels a = seen(left), b = seen(right);
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

TEST(KernelColour, FamiliesAreToldApartByTheColourBlindOnDarkAndOnLight) {
  const char* const names[] = {"softmax", "linear-cosine", "hydra-cosine", "elu", "relu", "hedgehog", "sdpa"};
  for (const Colour ground : {Colour{0.078f, 0.082f, 0.094f, 1}, Colour{0.98f, 0.982f, 0.986f, 1}}) {
    for (const auto& vision : visions) {
      for (const char* const first : names) {
        for (const char* const second : names) {
          if (std::string_view(first) >= second) continue;
          const Colour a = with_contrast(kernel_colour(first), ground, 3);
          const Colour b = with_contrast(kernel_colour(second), ground, 3);
          EXPECT_GT(seen_difference(a, b, vision), 10) << first << " and " << second;
        }
      }
    }
  }
}

TEST(Contrast, IsThatOfWcag) {
  const Colour black{0, 0, 0, 1}, white{1, 1, 1, 1}, grey{0.5f, 0.5f, 0.5f, 1};
  EXPECT_NEAR(contrast(black, white), 21, 1e-9);
  EXPECT_NEAR(contrast(white, black), 21, 1e-9);
  EXPECT_NEAR(contrast(grey, grey), 1, 1e-9);
  EXPECT_NEAR(contrast(grey, white), 3.98, 0.01);
}

TEST(Contrast, IsReachedWithoutChangingMoreThanNeeded) {
  const Colour white{1, 1, 1, 1}, dark{0.08f, 0.08f, 0.09f, 1}, yellow{0.94f, 0.89f, 0.26f, 1};
  const Colour darker = with_contrast(yellow, white, 3);
  EXPECT_NEAR(contrast(darker, white), 3, 0.01);
  EXPECT_NEAR(darker.green / darker.red, yellow.green / yellow.red, 1e-3) << "the hue stays";
  const Colour same = with_contrast(yellow, dark, 3);
  EXPECT_EQ(same.red, yellow.red);
  EXPECT_NEAR(contrast(with_contrast(dark, dark, 4.5), dark), 4.5, 0.02);
  EXPECT_EQ(with_contrast(yellow, Colour{0.5f, 0.5f, 0.5f, 1}, 21).red, 0.0f) << "the best there is";
}

TEST(KernelColour, OfAKernelWithoutAColourFollowsFromItsName) {
  const auto same = [](const Colour& a, const Colour& b) {
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
  };
  const char* const known[] = {"softmax", "sdpa", "hydra-cosine", "hedgehog",
                               "elu",     "relu", "exp-t1",       "taylor"};
  for (const char* const name : {"relu-squared", "a-new-kernel"}) {
    const Colour colour = kernel_colour(name);
    EXPECT_TRUE(same(colour, kernel_colour(std::string(name) + ":seed=7"))) << name;
    EXPECT_FALSE(same(colour, kernel_colour(""))) << name;
    for (const char* const other : known) {
      const Colour taken = kernel_colour(other);
      EXPECT_GT(std::abs(colour.red - taken.red) + std::abs(colour.green - taken.green) +
                    std::abs(colour.blue - taken.blue),
                0.29f)
          << name << " and " << other;
    }
  }
  EXPECT_FALSE(same(kernel_colour("relu-squared"), kernel_colour("a-new-kernel")));
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
