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
// At most `most` round numbers within low…high (1-2-5 steps), or powers of ten if logarithmic.
std::vector<Tick> ticks(double low, double high, bool logarithmic, int most = 6);

// A number for people: `digits` significant digits, a true minus sign, no trailing zeros and no exponent.
// Nearer to zero than 0.0001 it is "< 0.0001" or "just below 0", from a million on "1.2·10⁶"; "—" for NaN.
std::string number_text(double value, int digits = 3);
// The same of a quantity that may be absent: "none" for 0.
std::string amount_text(double value);
// A share as per cent in a label: "63.9 %" with three significant digits, "none" for 0, "< 0.1 %" and
// "just below 0 %" for less; "—" for NaN.
std::string percent_text(double share);
// A number with a fixed number of decimals, for columns; a true minus sign, "—" for NaN.
std::string decimal_text(double value, int decimals);
// The decimals that give a column's largest magnitude three significant digits; 0 for 0.
int decimals_of(double largest);

} // namespace hydrascope
