// Bars and lines.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double gap = 3, tick_length = 2;

Colour bar_colour(const BarsPanel& panel, std::size_t index) {
  return index < panel.colours.size() ? panel.colours[index] : Colour{0, 0.447f, 0.698f, 1};
}

// Bars start at 0: a bar's length is its value.
std::pair<double, double> bar_range(const BarsPanel& panel) {
  double low = 0, high = 0;
  for (const auto* const values : {&panel.values, &panel.marks}) {
    for (const double value : *values) {
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  return {low, high > low ? high : low + 1};
}

double widest_value(const BarsPanel& panel, const Ink& ink) {
  double widest = 0;
  for (const double value : panel.values) {
    widest = std::max(widest, text_width(number_text(value), ink.label()));
  }
  return widest;
}

// Long labels take at most half of the panel and are broken there.
std::vector<std::string> bar_label(const std::string& label, const Ink& ink, double width) {
  return wrap_text(label, ink.label(), std::max(40.0, width));
}

double row_pitch(const Ink& ink, std::size_t lines) {
  return 1.9 * ink.size + static_cast<double>(lines > 0 ? lines - 1 : 0) * line_height(ink.label());
}

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

// What the axis spans: the data, widened where all of it is one number.
Range range_of(const LinesPanel& panel, bool vertical) {
  const bool logarithmic = vertical ? panel.log_y : panel.log_x;
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
  if (vertical && !logarithmic) {
    const double margin = 0.04 * (range.high - range.low);
    return {range.low >= 0 && range.low < 0.3 * range.high ? 0 : range.low - margin, range.high + margin};
  }
  return range;
}

double legend_width(const LinesPanel& panel, const Ink& ink) {
  double widest = 0;
  for (const auto& line : panel.lines) {
    widest = std::max(widest, text_width(line.name, ink.tick()));
  }
  return widest > 0 ? widest + 16 : 0;
}

Scale axis_scale(const Range& range, bool logarithmic) {
  Scale scale;
  scale.low = range.low;
  scale.high = range.high;
  scale.logarithmic = logarithmic;
  return scale;
}

void draw_frame(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Box& body, const Range& across,
                const Range& up) {
  for (const auto& mark : ticks(across.low, across.high, panel.log_x, 6)) {
    const double x = body.x + mark.position * body.width;
    canvas.line(std::array<Point, 2>{{{x, body.y}, {x, body.bottom()}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {x, body.bottom() + gap + ascent(ink.tick())}, ink.tick(), Align::centre);
  }
  for (const auto& mark : ticks(up.low, up.high, panel.log_y, 6)) {
    const double y = body.bottom() - mark.position * body.height;
    canvas.line(std::array<Point, 2>{{{body.x, y}, {body.right(), y}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {body.x - gap, y + 0.36 * ink.tick().size}, ink.tick(), Align::right);
  }
  canvas.line(
      std::array<Point, 3>{{{body.x, body.y}, {body.x, body.bottom()}, {body.right(), body.bottom()}}},
      ink.rule, 0.6);
  const double below = body.bottom() + gap + line_height(ink.tick());
  draw_aligned(canvas, panel.x_label, {body.x + body.width / 2, below + ascent(ink.tick())}, ink.tick(),
               Align::centre);
}

double widest_y_tick(const LinesPanel& panel, const Ink& ink) {
  const Range up = range_of(panel, true);
  double widest = 0;
  for (const auto& mark : ticks(up.low, up.high, panel.log_y, 6)) {
    widest = std::max(widest, text_width(mark.text, ink.tick()));
  }
  return widest;
}

} // namespace

Surround surround(const BarsPanel& panel, const Ink& ink, const Placement&, double width) {
  double widest = 0;
  for (const auto& label : panel.labels) {
    for (const auto& line : bar_label(label, ink, width * 0.6)) {
      widest = std::max(widest, text_width(line, ink.label()));
    }
  }
  return {widest + 2 * gap, widest_value(panel, ink) + 2 * gap,
          gap + line_height(ink.tick()) + (panel.x_label.empty() ? 0 : line_height(ink.tick()))};
}

double body_height(const BarsPanel& panel, const Ink& ink, double width) {
  double height = 0;
  for (const auto& label : panel.labels) {
    height += row_pitch(ink, bar_label(label, ink, width * 0.6).size());
  }
  return height;
}

void draw(Canvas& canvas, const BarsPanel& panel, const Ink& ink, const Placement&, const Box& body) {
  const auto [low, high] = bar_range(panel);
  const auto across = [&, first = low, last = high](double value) {
    return body.x + (value - first) / (last - first) * body.width;
  };
  for (const auto& mark : ticks(low, high, false, 5)) {
    const double x = body.x + mark.position * body.width;
    canvas.line(std::array<Point, 2>{{{x, body.y}, {x, body.bottom()}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {x, body.bottom() + gap + ascent(ink.tick())}, ink.tick(), Align::centre);
  }
  double y = body.y;
  for (std::size_t index = 0; index < panel.labels.size(); ++index) {
    const double value = index < panel.values.size() ? panel.values[index] : std::nan("");
    const auto lines = bar_label(panel.labels[index], ink, body.width * 0.6);
    const double pitch = row_pitch(ink, lines.size());
    const double thickness = 1.25 * ink.size;
    if (std::isfinite(value)) {
      const double from = across(std::min(0.0, value)), to = across(std::max(0.0, value));
      canvas.fill({from, y + (pitch - thickness) / 2, std::max(0.3, to - from), thickness},
                  bar_colour(panel, index));
    }
    double reach = std::isfinite(value) ? std::max(0.0, value) : 0; // the number stands behind all of it
    if (index < panel.marks.size() && std::isfinite(panel.marks[index])) {
      const double x = across(panel.marks[index]);
      canvas.line(std::array<Point, 2>{{{x, y + (pitch - thickness) / 2}, {x, y + (pitch + thickness) / 2}}},
                  ink.rule, 0.8);
      reach = std::max(reach, panel.marks[index]);
    }
    canvas.text(number_text(value), {across(reach) + gap, y + pitch / 2 + 0.36 * ink.size}, ink.label());
    const double text_height = line_height(ink.label()) * static_cast<double>(lines.size());
    draw_lines(canvas, lines, {body.x - 2 * gap, y + (pitch - text_height) / 2}, ink.label(), Align::right);
    y += pitch;
  }
  canvas.line(std::array<Point, 2>{{{across(0), body.y}, {across(0), body.bottom()}}}, ink.rule, 0.6);
  draw_aligned(canvas, panel.x_label,
               {body.x + body.width / 2, body.bottom() + gap + line_height(ink.tick()) + ascent(ink.tick())},
               ink.tick(), Align::centre);
}

Surround surround(const LinesPanel& panel, const Ink& ink, const Placement&, double) {
  return {widest_y_tick(panel, ink) + gap + (panel.y_label.empty() ? 0 : 1.3 * line_height(ink.tick())),
          std::max(legend_width(panel, ink), 8.0),
          gap + line_height(ink.tick()) + (panel.x_label.empty() ? 0 : 1.2 * line_height(ink.tick()))};
}

double body_height(const LinesPanel&, const Ink&, double width) { return width * 0.6; }

void draw(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Placement&, const Box& body) {
  const Range across = range_of(panel, false), up = range_of(panel, true);
  draw_frame(canvas, panel, ink, body, across, up);
  const Scale horizontal = axis_scale(across, panel.log_x), vertical = axis_scale(up, panel.log_y);
  double legend_y = body.y + ink.tick().size;
  for (const auto& line : panel.lines) {
    std::vector<Point> points;
    const auto flush = [&] {
      if (points.size() == 1) {
        canvas.circle(points[0], 1, line.colour, 1);
      } else if (points.size() > 1) {
        canvas.line(points, line.colour, 1.1);
      }
      points.clear();
    };
    for (std::size_t index = 0; index < std::min(line.x.size(), line.y.size()); ++index) {
      if (!std::isfinite(line.x[index]) || !std::isfinite(line.y[index])) {
        flush(); // a gap in the numbers is a gap in the line
        continue;
      }
      points.push_back({body.x + scale_position(horizontal, line.x[index]) * body.width,
                        body.bottom() - scale_position(vertical, line.y[index]) * body.height});
      if (index < line.upper.size() && std::isfinite(line.upper[index])) {
        const Point point = points.back();
        const double top = body.bottom() - scale_position(vertical, line.upper[index]) * body.height;
        canvas.line(std::array<Point, 2>{{point, {point.x, top}}}, line.colour, 0.7);
        canvas.line(std::array<Point, 2>{{{point.x - 1.5, top}, {point.x + 1.5, top}}}, line.colour, 0.7);
      }
    }
    flush();
    if (!line.name.empty()) {
      const double x = body.right() + 4;
      canvas.line(std::array<Point, 2>{{{x, legend_y - 0.3 * ink.tick().size},
                                        {x + 8, legend_y - 0.3 * ink.tick().size}}},
                  line.colour, 1.4);
      canvas.text(line.name, {x + 11, legend_y}, ink.tick());
      legend_y += line_height(ink.tick());
    }
  }
  if (!panel.y_label.empty()) {
    const double x = body.x - gap - widest_y_tick(panel, ink) - 0.45 * ink.tick().size;
    canvas.text(panel.y_label, {x, body.y + body.height / 2 + text_width(panel.y_label, ink.tick()) / 2},
                ink.tick(), 90);
  }
}

} // namespace hydrascope
