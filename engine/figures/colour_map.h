// Perceptual colour maps as 256-entry tables, for the window's textures and for exported figures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hydrascope {

struct Colour {
  float red = 0, green = 0, blue = 0, alpha = 1; // sRGB, 0…1
};

enum class ColourMap { viridis, magma, cividis, blue_white_red };

const char* colour_map_name(ColourMap map);
inline bool is_diverging(ColourMap map) { return map == ColourMap::blue_white_red; }

using ColourTable = std::array<std::array<std::uint8_t, 3>, 256>;
const ColourTable& colour_table(ColourMap map); // as published
Colour colour_of(ColourMap map, float value01); // clamped; NaN gives neutral grey

// What a map's colours lie on. photograph_by_value: with an opacity that grows with the value.
enum class Backdrop { matrix, words, photograph, photograph_by_value };

// The map's colours on a ground, so that values near zero recede into it and large ones stand out. A
// diverging map has the ground in its middle if that is dark, else white. A sequential map grows darker from
// a light ground; on a dark one it is as published, but starts at the ground where it shades words.
ColourTable colours_on(const Colour& ground, ColourMap map, Backdrop backdrop);
// The index of the entry at a position, clamped to 0…1. Rounded as a float, so that the last bits of a
// position do not decide between two entries.
std::size_t entry_at(double position);
// NaN gives neutral grey.
Colour colour_at(const ColourTable& colours, double position);

// How opaque a map is over a photograph if its opacity grows with the value, as its root: 0…1, at a position
// 0…1 of its scale.
double growing_opacity(ColourMap map, double position);

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
