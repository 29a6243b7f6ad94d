#include "engine/figures/colour_map.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/figures/colour_tables.h"

namespace hydrascope {
namespace {

using Table = std::array<std::array<std::uint8_t, 3>, 256>;

Table bytes_of(const std::array<std::uint32_t, 256>& packed) {
  Table table{};
  for (std::size_t entry = 0; entry < packed.size(); ++entry) {
    table[entry] = {static_cast<std::uint8_t>(packed[entry] >> 16),
                    static_cast<std::uint8_t>(packed[entry] >> 8 & 0xff),
                    static_cast<std::uint8_t>(packed[entry] & 0xff)};
  }
  return table;
}

Colour colour_from(std::uint32_t packed) {
  return {static_cast<float>(packed >> 16 & 0xff) / 255.0f, static_cast<float>(packed >> 8 & 0xff) / 255.0f,
          static_cast<float>(packed & 0xff) / 255.0f, 1.0f};
}

// Okabe & Ito's eight, then Tol's "muted" and "vibrant" for the kernels beyond them; one family keeps one
// hue.
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 29> kernel_colours{{
    {"softmax", 0x0072b2},
    {"sdpa", 0x56b4e9},
    {"flash", 0x3a7ca5},
    {"local-window", 0x332288},
    {"linear-cosine", 0xcc79a7},
    {"hydra-cosine", 0xd55e00},
    {"hydra-tanh-l2", 0xe69f00},
    {"hydra-mean", 0xee7733},
    {"hydra-cosine-ln", 0xa63d00},
    {"hydra-tanh-l2-ln", 0xb57c00},
    {"hydra-tanh-softmax", 0xcc3311},
    {"hydra-sigmoid-softmax", 0xcc6677},
    {"aft-simple", 0x117733},
    {"hydra-l1", 0x882255},
    {"poly-nl", 0xee3377},
    {"elu", 0x999933},
    {"relu", 0xddcc77},
    {"t2r", 0xb8a600},
    {"t2r-hh", 0x7a7000},
    {"performer", 0xaa4499},
    {"cosformer", 0x7e6bb5},
    {"exp-t1", 0x8c8c8c},
    {"exp-t2", 0x5c5c5c},
    {"taylor", 0x88ccee},
    {"hedgehog", 0x009e73},
    {"hedgehog-softmax", 0x44aa99},
    {"hedgehog-untrained", 0x7fc8a9},
    {"hydra", 0xd55e00},
    {"linear", 0xcc79a7},
}};

double linear(float channel) {
  const auto value = static_cast<double>(channel);
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

Colour mixed(const Colour& colour, float towards, float share) {
  const auto channel = [&](float value) { return value + (towards - value) * share; };
  return {channel(colour.red), channel(colour.green), channel(colour.blue), colour.alpha};
}

} // namespace

const char* colour_map_name(ColourMap map) {
  switch (map) {
    case ColourMap::viridis: return "viridis";
    case ColourMap::magma: return "magma";
    case ColourMap::cividis: return "cividis";
    case ColourMap::blue_white_red: return "blue-white-red";
  }
  return "viridis";
}

std::span<const std::array<std::uint8_t, 3>, 256> colour_table(ColourMap map) {
  static const Table viridis = bytes_of(viridis_table);
  static const Table magma = bytes_of(magma_table);
  static const Table cividis = bytes_of(cividis_table);
  static const Table blue_white_red = bytes_of(blue_white_red_table);
  switch (map) {
    case ColourMap::viridis: return viridis;
    case ColourMap::magma: return magma;
    case ColourMap::cividis: return cividis;
    case ColourMap::blue_white_red: return blue_white_red;
  }
  return viridis;
}

Colour colour_of(ColourMap map, float value01) {
  if (std::isnan(value01)) {
    return {0.6f, 0.6f, 0.6f, 1.0f};
  }
  const auto entry = static_cast<std::size_t>(std::lround(std::clamp(value01, 0.0f, 1.0f) * 255.0f));
  const auto& [red, green, blue] = colour_table(map)[entry];
  return {static_cast<float>(red) / 255.0f, static_cast<float>(green) / 255.0f,
          static_cast<float>(blue) / 255.0f, 1.0f};
}

Colour kernel_colour(std::string_view kernel_name) {
  const std::string_view name = kernel_name.substr(0, kernel_name.find(':'));
  const auto* const found = std::find_if(kernel_colours.begin(), kernel_colours.end(),
                                         [&](const auto& entry) { return entry.first == name; });
  return colour_from(found == kernel_colours.end() ? 0x777777u : found->second);
}

double relative_luminance(const Colour& colour) {
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

double contrast(const Colour& left, const Colour& right) {
  const double a = relative_luminance(left), b = relative_luminance(right);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

Colour with_contrast(const Colour& colour, const Colour& ground, double least) {
  if (contrast(colour, ground) >= least) return colour;
  const Colour white{1, 1, 1, 1}, black{0, 0, 0, 1};
  const float towards = contrast(white, ground) >= contrast(black, ground) ? 1.0f : 0.0f;
  float too_little = 0, enough = 1;
  for (int i = 0; i < 16; ++i) { // the contrast grows with the share, once past the ground's own luminance
    const float middle = (too_little + enough) / 2;
    (contrast(mixed(colour, towards, middle), ground) >= least ? enough : too_little) = middle;
  }
  return mixed(colour, towards, enough);
}

} // namespace hydrascope
