// Where a value lies on a scale, and the numbers written beside its colour bar.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/colour_map.h"
#include "engine/figures/figure.h"

namespace hydrascope {

// 0…1 from `low` to `high`, clamped; NaN for NaN. Logarithmic: values at or below 0 lie at 0.
double scale_position(const Scale& scale, double value);
Colour scale_colour(const Scale& scale, double value);

struct Tick {
  double position = 0; // 0…1
  std::string text;
};
// At most `most` round numbers within low…high (1-2-5 steps), or powers of ten if logarithmic.
std::vector<Tick> ticks(double low, double high, bool logarithmic, int most = 6);

// A number for people: `digits` significant ones, a true minus sign, no trailing zeros; "—" for NaN.
std::string number_text(double value, int digits = 3);
// A number of a column, whose decimals stand below each other; likewise.
std::string decimal_text(double value, int decimals);
// The decimals that give a column's largest magnitude three significant digits; 0 for 0.
int decimals_of(double largest);

} // namespace hydrascope
