#include "engine/figures/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace hydrascope {
namespace {

std::string with_true_minus(std::string text) {
  const auto is_zero = text.find_first_not_of("-0.") == std::string::npos;
  if (text.starts_with('-')) {
    text = is_zero ? text.substr(1) : "\u2212" + text.substr(1);
  }
  return text;
}

std::string raised_power(double exponent) {
  constexpr const char* raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : fmt::format("{:.0f}", std::abs(exponent))) {
    text += raised[digit - '0'];
  }
  return text;
}

// "2·10⁻⁶" for 2e-06; without an exponent as {:g} writes it.
std::string significant_text(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  return text.substr(0, exponent) + "·" + raised_power(std::stod(text.substr(exponent + 1)));
}

std::vector<Tick> linear_ticks(double low, double high, int most) {
  std::vector<Tick> result;
  const double raw = (high - low) / std::max(1, most - 1);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  const bool quarters = std::abs(step / power - 2.5) < 1e-6;
  if (quarters && step < 10) {
    ++decimals; // a step of 0.25 needs one digit more than its power of ten
  }
  // The digits that tell numbers apart that are a step apart, of which doubles have 15.
  const double last_digit = std::floor(std::log10(step) + 1e-9) - (quarters ? 1 : 0);
  const auto digits_of = [&](double value) {
    return value == 0 ? 1
                      : std::clamp(static_cast<int>(std::floor(std::log10(std::abs(value))) - last_digit) + 1,
                                   3, 15);
  };
  const double slack = step * 1e-6;
  // NOLINTNEXTLINE(bugprone-float-loop-counter): whole numbers, exact
  for (double index = std::ceil((low - slack) / step); index * step <= high + slack; ++index) {
    const double value = index * step;
    const std::string text = decimals > 5 || std::abs(value) >= 1e6
                                 ? significant_text(value, digits_of(value))
                                 : fmt::format("{:.{}f}", value, decimals);
    result.push_back({std::clamp((value - low) / (high - low), 0.0, 1.0), with_true_minus(text)});
  }
  return result;
}

std::string power_text(double exponent) {
  if (exponent >= -3 && exponent <= 4) {
    return fmt::format("{:g}", std::pow(10.0, exponent));
  }
  return raised_power(exponent);
}

std::vector<Tick> logarithmic_ticks(double low, double high, int most) {
  std::vector<Tick> result;
  const double bottom = std::log10(low), span = std::log10(high) - bottom;
  const double first = std::ceil(bottom - 1e-9), last = std::floor(bottom + span + 1e-9);
  const auto add = [&](double value, std::string text) {
    result.push_back({std::clamp((std::log10(value) - bottom) / span, 0.0, 1.0), std::move(text)});
  };
  if (last - first < 2) { // a decade or two: 1, 2 and 5 times their powers
    // NOLINTNEXTLINE(bugprone-float-loop-counter): whole numbers, exact
    for (double exponent = first - 1; exponent <= last; ++exponent) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10.0, exponent);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) {
          add(value, significant_text(value, 6));
        }
      }
    }
    if (result.size() >= 2) return result;
    result = linear_ticks(low, high, most); // the range lies between two of them
    for (Tick& mark : result)
      mark.position =
          std::clamp(std::log1p(mark.position * (high / low - 1)) / std::log(high / low), 0.0, 1.0);
    return result;
  }
  const double stride = std::max(1.0, std::ceil((last - first + 1) / most));
  // NOLINTNEXTLINE(bugprone-float-loop-counter): whole numbers, exact
  for (double exponent = last; exponent >= first - 1e-9; exponent -= stride) {
    add(std::pow(10.0, exponent), power_text(exponent));
  }
  std::reverse(result.begin(), result.end());
  return result;
}

} // namespace

double scale_position(const Scale& scale, double value) {
  if (std::isnan(value)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (!(scale.high > scale.low)) {
    return value >= scale.high && scale.high > 0 ? 1.0 : 0.0;
  }
  if (!scale.logarithmic) {
    return std::clamp((value - scale.low) / (scale.high - scale.low), 0.0, 1.0);
  }
  if (value <= 0 || scale.low <= 0) {
    return 0.0;
  }
  return std::clamp((std::log(value) - std::log(scale.low)) / (std::log(scale.high) - std::log(scale.low)),
                    0.0, 1.0);
}

std::vector<Tick> ticks(double low, double high, bool logarithmic, int most) {
  // Within the rounding of its ends a range has no steps that could be counted.
  constexpr double rounding = 1e-12;
  const bool one_value = !(high - low > rounding * std::max(std::abs(low), std::abs(high)));
  if (!std::isfinite(low) || !std::isfinite(high) || one_value) {
    return {{0.0, number_text(low)}};
  }
  std::vector<Tick> found;
  do {
    found = logarithmic && low > 0 ? logarithmic_ticks(low, high, most) : linear_ticks(low, high, most);
  } while (found.size() < 2 && ++most < 12); // a bar needs at least two numbers
  return found;
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) {
    return "—";
  }
  // 1050, where significant digits alone give 1.05e+03; 99.6 with two of them gives 1e+02.
  const bool whole = std::abs(value) >= std::pow(10.0, digits - 1) && std::abs(value) < 1e6;
  return with_true_minus(whole ? fmt::format("{:.0f}", value) : significant_text(value, digits));
}

std::string amount_text(double value) {
  constexpr double least = 1e-4;
  if (value == 0) return "none";
  if (std::abs(value) < least) return value > 0 ? "< 0.0001" : "≈ 0";
  return number_text(value);
}

std::string percent_text(double share) {
  constexpr double least = 0.001; // 0.1 %
  if (std::isnan(share)) return "—";
  if (share == 0) return "none";
  if (std::abs(share) < least) return share > 0 ? "< 0.1 %" : "≈ 0 %";
  return number_text(100 * share) + " %";
}

std::string decimal_text(double value, int decimals) {
  if (std::isnan(value)) return "—";
  return with_true_minus(fmt::format("{:.{}f}", value, decimals));
}

int decimals_of(double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  return std::max(0, 2 - static_cast<int>(std::floor(std::log10(largest))));
}

} // namespace hydrascope
