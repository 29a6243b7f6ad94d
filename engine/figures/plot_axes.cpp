// Where the numbers of a plot lie.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value, bool logarithmic) {
    if (std::isfinite(value) && (!logarithmic || value > 0)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

// The range of an axis: the data's, widened where all values are equal.
Range range_of(const LinesPanel& panel, bool vertical) {
  const bool logarithmic = vertical ? panel.log_y : panel.log_x;
  if (const auto& shown = vertical ? panel.y_axis : panel.x_axis) return {shown->low, shown->high};
  Range range;
  for (const auto& line : panel.lines) {
    for (const double value : vertical ? line.y : line.x) {
      range.take(value, logarithmic);
    }
    if (!vertical) continue;
    for (const double value : line.upper) range.take(value, logarithmic);
  }
  if (range.low > range.high) {
    return {logarithmic ? 1.0 : 0.0, logarithmic ? 10.0 : 1.0};
  }
  if (range.low == range.high) {
    const double by = logarithmic ? range.low * 0.5 : std::max(std::abs(range.low) * 0.5, 0.5);
    return {range.low - by, range.high + by};
  }
  const bool points = std::ranges::all_of(
      panel.lines, [](const LinesPanel::Line& line) { return line.style == LinesPanel::Style::points; });
  if (!vertical && points && !logarithmic) { // a mark on the frame would be cut in half
    const double margin = 0.06 * (range.high - range.low);
    return {range.low >= 0 && range.low < 0.3 * range.high ? 0 : range.low - margin, range.high + margin};
  }
  if (vertical && !logarithmic) {
    const double margin = 0.04 * (range.high - range.low);
    return {range.low >= 0 && range.low < 0.3 * range.high ? 0 : range.low - margin, range.high + margin};
  }
  return range;
}

Scale axis_scale(const Range& range, bool logarithmic) {
  Scale scale;
  scale.low = range.low;
  scale.high = range.high;
  scale.logarithmic = logarithmic;
  return scale;
}

// As scale_position(), but extrapolated beyond the ends.
double position_of(const Scale& scale, double value) {
  if (!(value < scale.low || value > scale.high) || (scale.logarithmic && !(value > 0)))
    return scale_position(scale, value);
  return scale.logarithmic ? std::log(value / scale.low) / std::log(scale.high / scale.low)
                           : (value - scale.low) / (scale.high - scale.low);
}

double value_of(const Scale& scale, double position) {
  return scale.logarithmic ? scale.low * std::pow(scale.high / scale.low, position)
                           : scale.low + position * (scale.high - scale.low);
}

} // namespace

Point PlotAxes::at(double x, double y) const {
  return {body.x + position_of(across, x) * body.width, body.bottom() - position_of(up, y) * body.height};
}

Point PlotAxes::value(Point point) const {
  return {value_of(across, (point.x - body.x) / body.width),
          value_of(up, (body.bottom() - point.y) / body.height)};
}

PlotAxes plot_axes(const LinesPanel& panel, const Box& body) {
  return {body, axis_scale(range_of(panel, false), panel.log_x),
          axis_scale(range_of(panel, true), panel.log_y)};
}

bool within(const Box& body, Point point) {
  constexpr double rounding = 1e-6;
  return point.x >= body.x - rounding && point.x <= body.right() + rounding && point.y >= body.y - rounding &&
         point.y <= body.bottom() + rounding;
}

bool has_place(const PlotAxes& axes, double x, double y) {
  const auto on = [](const Scale& scale, double value) {
    return std::isfinite(value) && (!scale.logarithmic || value > 0);
  };
  return on(axes.across, x) && on(axes.up, y);
}

} // namespace hydrascope
