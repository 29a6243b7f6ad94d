// Perceptual colour maps as 256-entry tables: one source for the window's textures and the exported figures.
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

// The fixed colour of a kernel in every plot, table and badge, from a colour-blind-safe palette (Okabe–Ito
// and Tol).
Colour kernel_colour(std::string_view kernel_name);

} // namespace hydrascope
