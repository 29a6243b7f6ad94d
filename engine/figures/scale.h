// Positions and colours on a scale, ticks, and numbers as text.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/colour_map.h"
#include "engine/figures/figure.h"

namespace hydrascope {

// 0…1 from `low` to `high`, clamped; NaN for NaN. Logarithmic: values at or below 0 lie at 0.
double scale_position(const Scale& scale, double value);

struct Tick {
  double position = 0; // 0…1
  std::string text;
};
// At most `most` round numbers within low…high (1-2-5 steps), or powers of ten if logarithmic, in a narrow
// range also those between them; `low` alone if the two are equal up to rounding.
std::vector<Tick> ticks(double low, double high, bool logarithmic, int most = 6);

// A number for people: `digits` significant digits, a true minus sign, no trailing zeros; "3.2·10⁻⁵" below
// 0.0001 and "1.2·10⁶" from a million on; "—" for NaN.
std::string number_text(double value, int digits = 3);
// A quantity in a label, where its exact value does not matter: "none" for 0, "< 0.0001" and "≈ 0" (negative)
// for less than that.
std::string amount_text(double value);
// A share as per cent in a label: "63.9 %" with three significant digits, "none" for 0, "< 0.1 %" and
// "≈ 0 %" for less; "—" for NaN.
std::string percent_text(double share);
// A number with a fixed number of decimals, for columns; a true minus sign, "—" for NaN.
std::string decimal_text(double value, int decimals);
// The decimals that give a column's largest magnitude three significant digits; 0 for 0.
int decimals_of(double largest);

} // namespace hydrascope
