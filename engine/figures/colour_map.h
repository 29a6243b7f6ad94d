// Perceptual colour maps as 256-entry tables, for the window's textures and for exported figures.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace hydrascope {

struct Colour {
  float red = 0, green = 0, blue = 0, alpha = 1; // sRGB, 0…1
};

enum class ColourMap { viridis, magma, cividis, blue_white_red };

const char* colour_map_name(ColourMap map);
std::span<const std::array<std::uint8_t, 3>, 256> colour_table(ColourMap map);
Colour colour_of(ColourMap map, float value01); // clamped; NaN gives neutral grey

// The fixed colour of a kernel in every plot, table and badge. The papers' kernels have colours from a
// colour-blind-safe palette (Okabe–Ito and Tol); the colour of any other kernel follows from its name and
// differs from all of those. By name, with or without parameters (`performer:seed=7`); grey without a name.
Colour kernel_colour(std::string_view kernel_name);

// WCAG 2.1's relative luminance, 0 (black) … 1 (white), and contrast, 1 … 21.
double relative_luminance(const Colour& colour);
double contrast(const Colour& left, const Colour& right);
// The colour, mixed with as much white or black as it needs for this contrast to `ground`; unchanged if it
// has it. If neither white nor black reaches the contrast, the better of the two.
Colour with_contrast(const Colour& colour, const Colour& ground, double least);

} // namespace hydrascope
