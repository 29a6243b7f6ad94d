// Colour maps on a ground: small values recede into it.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/figures/colour_map.h"

namespace hydrascope {
namespace {

// OKLab (B. Ottosson 2020): equal steps look equal.
struct Lab {
  double lightness = 0, a = 0, b = 0;
};

double linear_of(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}
double encoded(double channel) {
  return channel <= 0.0031308 ? channel * 12.92 : 1.055 * std::pow(channel, 1 / 2.4) - 0.055;
}

Lab lab_of(const Colour& colour) {
  const double r = linear_of(static_cast<double>(colour.red)),
               g = linear_of(static_cast<double>(colour.green)),
               b = linear_of(static_cast<double>(colour.blue));
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

using Entry = ColourTable::value_type;

Entry entry_of(const Lab& lab) {
  const double l = std::pow(lab.lightness + 0.3963377774 * lab.a + 0.2158037573 * lab.b, 3);
  const double m = std::pow(lab.lightness - 0.1055613458 * lab.a - 0.0638541728 * lab.b, 3);
  const double s = std::pow(lab.lightness - 0.0894841775 * lab.a - 1.2914855480 * lab.b, 3);
  const auto byte = [](double channel) {
    return static_cast<std::uint8_t>(std::lround(encoded(std::clamp(channel, 0.0, 1.0)) * 255));
  };
  return {byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

Lab mixed_lab(const Lab& from, const Lab& to, double share) {
  const auto mix = [share](double left, double right) { return left + (right - left) * share; };
  return {mix(from.lightness, to.lightness), mix(from.a, to.a), mix(from.b, to.b)};
}

bool is_dark(const Colour& ground) { return relative_luminance(ground) < 0.18; }

// One side of a diverging map: its colours near zero and at the end of the scale.
struct Arm {
  Lab from, to;
};

// The colours next to zero are entries 127 and 128.
ColourTable diverging(const Arm& negative, const Arm& positive) {
  ColourTable table{};
  for (std::size_t step = 0; step < 128; ++step) {
    const double share = static_cast<double>(step) / 127;
    table[127 - step] = entry_of(mixed_lab(negative.from, negative.to, share));
    table[128 + step] = entry_of(mixed_lab(positive.from, positive.to, share));
  }
  return table;
}

// Blue, the ground, red: equally light at equal distance from zero.
ColourTable diverging_from(const Colour& ground) {
  constexpr Lab blue{0.74, -0.055, -0.125}, red{0.74, 0.135, 0.085};
  const Lab middle = lab_of(ground);
  return diverging({middle, blue}, {middle, red});
}

// Blue and red over a photograph that shows through where the values are small: strong from zero on, since
// the opacity already takes them back.
ColourTable diverging_over_photograph() {
  constexpr Lab blue{0.68, -0.04, -0.15}, deep_blue{0.46, -0.02, -0.20};
  constexpr Lab red{0.68, 0.17, 0.10}, deep_red{0.50, 0.20, 0.11};
  return diverging({blue, deep_blue}, {red, deep_red});
}

// From the ground into the published map: into its dark end on a light ground, without what is nearly black
// and would look like a hole in a photograph; into its light end on a dark one, where entries darker than the
// ground are left out.
ColourTable sequential_from(const Colour& ground, ColourMap map) {
  constexpr double blend = 0.2;        // share of the map over which the ground fades
  constexpr double least_light = 0.26; // in OKLab; viridis and cividis begin there
  const ColourTable& published = colour_table(map);
  const bool dark = is_dark(ground);
  const Lab start = lab_of(ground);
  const auto published_lab = [&](double position) {
    return lab_of(colour_at(published, dark ? position : 1 - position));
  };
  double first = 0, last = 1;
  while (!dark && last > 0 && published_lab(last).lightness < least_light) last -= 1.0 / 255;
  while (dark && first < 1 && published_lab(first).lightness < start.lightness) first += 1.0 / 255;
  ColourTable table{};
  for (std::size_t entry = 0; entry < table.size(); ++entry) {
    const double position = static_cast<double>(entry) / 255;
    table[entry] = entry_of(
        mixed_lab(start, published_lab(first + (last - first) * position), std::min(1.0, position / blend)));
  }
  return table;
}

} // namespace

double growing_opacity(ColourMap map, double position) {
  if (std::isnan(position)) return 0;
  const double clamped = std::clamp(position, 0.0, 1.0);
  // The root: focus maps have a peak beside which all other parts, linear in the value, could not be seen.
  return std::sqrt(is_diverging(map) ? std::abs(2 * clamped - 1) : clamped);
}

ColourTable colours_on(const Colour& ground, ColourMap map, Backdrop backdrop) {
  const bool dark = is_dark(ground);
  const bool by_value = backdrop == Backdrop::photograph_by_value;
  if (is_diverging(map) && by_value) return diverging_over_photograph();
  if (is_diverging(map)) return dark ? diverging_from(ground) : colour_table(map);
  if (dark && backdrop != Backdrop::words) return colour_table(map);
  return sequential_from(ground, map);
}

} // namespace hydrascope
