// Lines over x, and points in a plane.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double line_gap = 3;

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

constexpr double legend_mark = 16; // the room of a line's mark before its name

// The line's name, shortened where the legend has not enough room.
std::string legend_name(const LinesPanel::Line& line, const Ink& ink, const Placement& placement) {
  return placement.legend > 0 ? shortened_text(line.name, ink.tick(), placement.legend - legend_mark)
                              : line.name;
}

double legend_width(const LinesPanel& panel, const Ink& ink, const Placement& placement) {
  double widest = 0;
  for (const auto& line : panel.lines)
    widest = std::max(widest, text_width(legend_name(line, ink, placement), ink.tick()));
  return widest > 0 ? widest + legend_mark : 0;
}

// The label of the axis below, which says also what logarithmic axes have no place for: along the other one
// there often is no room for it.
std::string below_label(const LinesPanel& panel) {
  int left_out = 0;
  for (const auto& line : panel.lines) {
    for (std::size_t point = 0; point < std::min(line.x.size(), line.y.size()); ++point) {
      if ((panel.log_x && line.x[point] <= 0) || (panel.log_y && line.y[point] <= 0)) ++left_out;
    }
  }
  if (left_out == 0) return panel.x_label;
  return fmt::format("{}{}{} value{} ≤ 0 left out", panel.x_label, panel.x_label.empty() ? "" : "; ",
                     left_out, left_out == 1 ? "" : "s");
}

// Of the axis' numbers and label below the body, beside which the legend goes on.
double axis_room(const LinesPanel& panel, const Ink& ink) {
  return line_gap + line_height(ink.tick()) +
         (below_label(panel).empty() ? 0 : 1.2 * line_height(ink.tick()));
}

// The height of a body beside which the legend finds room.
double legend_body(const LinesPanel& panel, const Ink& ink) {
  constexpr double rounding = 0.01;
  const auto named = std::ranges::count_if(panel.lines, [](const auto& line) { return !line.name.empty(); });
  return static_cast<double>(named) * line_height(ink.tick()) - axis_room(panel, ink) + rounding;
}

Scale axis_scale(const Range& range, bool logarithmic) {
  Scale scale;
  scale.low = range.low;
  scale.high = range.high;
  scale.logarithmic = logarithmic;
  return scale;
}

// Whole-number ticks where all x are whole numbers (layers, steps).
std::vector<Tick> across_ticks(const LinesPanel& panel, const Ink& ink, const Range& across, double width) {
  const bool counted = !panel.log_x && std::ranges::all_of(panel.lines, [](const LinesPanel::Line& line) {
    return std::ranges::all_of(line.x, [](double x) { return !std::isfinite(x) || x == std::floor(x); });
  });
  for (int most = 7; counted && most > 2; --most) {
    auto marks = ticks(across.low, across.high, false, most);
    const auto whole = [](const Tick& mark) { return mark.text.find('.') == std::string::npos; };
    if (std::ranges::all_of(marks, whole) && fit_across(marks, width, ink)) return marks;
  }
  return ticks_across(across.low, across.high, panel.log_x, 6, width, ink);
}

void draw_frame(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Box& body, const Range& across,
                const Range& up) {
  for (const auto& mark : across_ticks(panel, ink, across, body.width)) {
    const double x = body.x + mark.position * body.width;
    canvas.line(std::array<Point, 2>{{{x, body.y}, {x, body.bottom()}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {x, body.bottom() + line_gap + ascent(ink.tick())}, ink.tick(),
                 Align::centre);
  }
  for (const auto& mark : ticks_up(up.low, up.high, panel.log_y, 6, body.height, ink)) {
    const double y = body.bottom() - mark.position * body.height;
    canvas.line(std::array<Point, 2>{{{body.x, y}, {body.right(), y}}}, ink.grid, 0.4);
    draw_aligned(canvas, mark.text, {body.x - line_gap, y + 0.36 * ink.tick().size}, ink.tick(),
                 Align::right);
  }
  canvas.line(
      std::array<Point, 3>{{{body.x, body.y}, {body.x, body.bottom()}, {body.right(), body.bottom()}}},
      ink.rule, 0.6);
  const double below = body.bottom() + line_gap + line_height(ink.tick());
  draw_aligned(canvas, below_label(panel), {body.x + body.width / 2, below + ascent(ink.tick())}, ink.tick(),
               Align::centre);
}

double widest_y_tick(const LinesPanel& panel, const Ink& ink, double height) {
  const Range up = range_of(panel, true);
  double widest = 0;
  for (const auto& mark : ticks_up(up.low, up.high, panel.log_y, 6, height, ink)) {
    widest = std::max(widest, text_width(mark.text, ink.tick()));
  }
  return widest;
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

bool within(const Box& body, Point point) { // its edges belong to it
  constexpr double rounding = 1e-6;
  return point.x >= body.x - rounding && point.x <= body.right() + rounding && point.y >= body.y - rounding &&
         point.y <= body.bottom() + rounding;
}

// The part of the segment from `from` to `to` that lies in the body (Liang & Barsky 1984).
std::optional<std::array<Point, 2>> cut(Point from, Point to, const Box& body) {
  const double x = to.x - from.x, y = to.y - from.y;
  double enters = 0, leaves = 1;
  const auto edge = [&](double towards, double distance) {
    if (towards == 0) return distance >= 0;
    const double share = distance / towards;
    (towards < 0 ? enters : leaves) = towards < 0 ? std::max(enters, share) : std::min(leaves, share);
    return enters <= leaves;
  };
  if (!edge(-x, from.x - body.x) || !edge(x, body.right() - from.x) || !edge(-y, from.y - body.y) ||
      !edge(y, body.bottom() - from.y))
    return {};
  return std::array<Point, 2>{
      {{from.x + enters * x, from.y + enters * y}, {from.x + leaves * x, from.y + leaves * y}}};
}

// The pieces of a line that lie in the body.
std::vector<std::vector<Point>> cut(const std::vector<Point>& points, const Box& body) {
  if (std::ranges::all_of(points, [&](Point point) { return within(body, point); })) return {points};
  std::vector<std::vector<Point>> pieces;
  for (std::size_t index = 1; index < points.size(); ++index) {
    const auto piece = cut(points[index - 1], points[index], body);
    if (!piece) continue;
    const bool goes_on =
        !pieces.empty() && within(body, points[index - 1]) && within(body, pieces.back().back());
    if (!goes_on || pieces.back().back().x != piece->front().x || pieces.back().back().y != piece->front().y)
      pieces.push_back({piece->front()});
    pieces.back().push_back(piece->back());
  }
  return pieces;
}

// Whether both numbers lie on their axes: on a logarithmic one 0 and what is negative do not.
bool has_place(const PlotAxes& axes, double x, double y) {
  const auto on = [](const Scale& scale, double value) {
    return std::isfinite(value) && (!scale.logarithmic || value > 0);
  };
  return on(axes.across, x) && on(axes.up, y);
}

double ring_radius(const Ink& ink) { return 0.26 * ink.size; }

void draw_mark(Canvas& canvas, Point at, const Ink& ink, const Colour& colour, LinesPanel::Style style) {
  if (style == LinesPanel::Style::rings) return canvas.circle(at, ring_radius(ink), colour, 0.1 * ink.size);
  canvas.circle(at, 0.15 * ink.size, colour, 0.3 * ink.size);
}

// Dashes as short lines, so that a canvas needs no dash pattern.
void draw_dashed(Canvas& canvas, std::span<const Point> points, const Colour& colour) {
  constexpr double dash = 4, pause = 2.5;
  double phase = 0; // since the last dash began
  for (std::size_t index = 1; index < points.size(); ++index) {
    const Point from = points[index - 1], to = points[index];
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const auto along = [&](double distance) {
      return Point{from.x + (to.x - from.x) * distance / length,
                   from.y + (to.y - from.y) * distance / length};
    };
    double position = 0;
    while (position < length) {
      const double rest = phase < dash ? dash - phase : dash + pause - phase;
      const double step = std::min(rest, length - position);
      if (phase < dash)
        canvas.line(std::array<Point, 2>{{along(position), along(position + step)}}, colour, 0.9);
      position += step;
      phase = std::fmod(phase + step, dash + pause);
    }
  }
}

// Dashes from ring to ring, so that the rings stay empty.
void draw_between_rings(Canvas& canvas, std::span<const Point> points, const Ink& ink, const Box& body,
                        const Colour& colour) {
  for (std::size_t index = 1; index < points.size(); ++index) {
    const Point from = points[index - 1], to = points[index];
    const double share = ring_radius(ink) / std::hypot(to.x - from.x, to.y - from.y);
    if (!(share < 0.5)) continue;
    const Point step{(to.x - from.x) * share, (to.y - from.y) * share};
    if (const auto piece = cut({from.x + step.x, from.y + step.y}, {to.x - step.x, to.y - step.y}, body))
      draw_dashed(canvas, *piece, colour);
  }
}

void draw_whisker(Canvas& canvas, Point from, double top, const Colour& colour) {
  canvas.line(std::array<Point, 2>{{from, {from.x, top}}}, colour, 0.7);
  canvas.line(std::array<Point, 2>{{{from.x - 1.5, top}, {from.x + 1.5, top}}}, colour, 0.7);
}

void draw_line(Canvas& canvas, const LinesPanel::Line& line, const Ink& ink, const PlotAxes& axes) {
  const Colour colour = ink.mark(line.colour);
  std::vector<Point> points;
  const auto flush = [&] {
    if (points.size() == 1 && line.style == LinesPanel::Style::line) {
      if (within(axes.body, points[0])) canvas.circle(points[0], 1, colour, 1);
    } else if (line.style == LinesPanel::Style::rings) {
      draw_between_rings(canvas, points, ink, axes.body, colour);
    } else if (points.size() > 1 && line.style != LinesPanel::Style::points) {
      for (const auto& piece : cut(points, axes.body)) {
        if (line.style == LinesPanel::Style::dashed) {
          draw_dashed(canvas, piece, colour);
        } else {
          canvas.line(piece, colour, 1.1);
        }
      }
    }
    points.clear();
  };
  for (std::size_t index = 0; index < std::min(line.x.size(), line.y.size()); ++index) {
    if (!has_place(axes, line.x[index], line.y[index])) {
      flush(); // a gap in the numbers is a gap in the line
      continue;
    }
    points.push_back(axes.at(line.x[index], line.y[index]));
    if (!within(axes.body, points.back())) continue;
    if (index < line.upper.size() && std::isfinite(line.upper[index]))
      draw_whisker(canvas, points.back(), std::max(axes.body.y, axes.at(line.x[index], line.upper[index]).y),
                   colour);
    if (line.style != LinesPanel::Style::line && line.style != LinesPanel::Style::dashed)
      draw_mark(canvas, points.back(), ink, colour, line.style);
  }
  flush();
}

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

struct PointLabel {
  Point point;
  const std::string* text = nullptr;
  const LinesPanel::Line* line = nullptr;
  Box box;
  bool strays = false; // of points alone, away from its own point's height: may stand beside another's
};

std::vector<PointLabel> point_labels(const LinesPanel& panel, const Ink& ink, const PlotAxes& axes) {
  std::vector<PointLabel> labels;
  for (const auto& line : panel.lines) {
    for (std::size_t index = 0; index < std::min({line.labels.size(), line.x.size(), line.y.size()});
         ++index) {
      if (!has_place(axes, line.x[index], line.y[index]) || line.labels[index].empty()) continue;
      const Point point = axes.at(line.x[index], line.y[index]);
      if (within(axes.body, point)) labels.push_back({point, &line.labels[index], &line, {}, false});
    }
  }
  std::ranges::stable_sort(labels, {}, [](const PointLabel& label) { return label.point.y; });
  std::vector<Box> taken; // starts with the marks, so that no label covers a point
  for (const PointLabel& label : labels) {
    const double half = 0.3 * ink.size;
    taken.push_back({label.point.x - half, label.point.y - half, 2 * half, 2 * half});
  }
  const double height = line_height(ink.tick()), distance = 0.6 * ink.size;
  for (PointLabel& label : labels) {
    const double width = text_width(*label.text, ink.tick());
    const bool left = label.point.x + distance + width > axes.body.right();
    const double own_y = label.point.y - height / 2;
    Box box{left ? label.point.x - distance - width : label.point.x + distance, own_y, width, height};
    const auto move = [&](const bool down) {
      box.y = own_y;
      for (int tries = 0; tries < 40; ++tries) {
        const auto hit = std::ranges::find_if(taken, [&](const Box& other) { return overlap(box, other); });
        if (hit == taken.end()) break;
        box.y = down ? hit->bottom() + 0.01 : hit->y - height - 0.01;
      }
    };
    move(true);
    if (box.bottom() > axes.body.bottom() && box.y > label.point.y) move(false);
    taken.push_back(box);
    label.box = box;
    label.strays = label.line->style == LinesPanel::Style::points && box.y != own_y;
  }
  return labels;
}

// Labels right of the points or, near the right edge, left of them; moved down where they would overlap, or
// up where that leads out of the plot. Where some stray, all have their points' colours, and lines lead from
// those back to their points.
void draw_point_labels(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const PlotAxes& axes) {
  constexpr double readable = 4.5; // contrast of small text (WCAG 2.1, 1.4.3)
  const std::vector<PointLabel> labels = point_labels(panel, ink, axes);
  const bool some_stray = std::ranges::any_of(labels, &PointLabel::strays);
  for (const PointLabel& label : labels) {
    const double middle = label.box.y + label.box.height / 2;
    TextStyle style = ink.tick();
    if (some_stray) style.colour = with_contrast(label.line->colour, ink.ground, readable);
    if (label.strays) {
      const bool left = label.box.x < label.point.x;
      const Point end{left ? label.box.right() + 1 : label.box.x - 1, middle};
      canvas.line(std::array<Point, 2>{{label.point, end}}, style.colour, 0.4);
    }
    canvas.text(*label.text, {label.box.x, middle + 0.36 * style.size}, style);
  }
}

void draw_legend(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Placement& placement,
                 const Box& body) {
  // If there is no room for all lines: the first ones and the last, which often is of another kind.
  std::vector<const LinesPanel::Line*> named;
  for (const auto& line : panel.lines) {
    if (!line.name.empty()) named.push_back(&line);
  }
  const double room = body.height + axis_room(panel, ink);
  const auto most = static_cast<std::size_t>(std::max(3.0, std::floor(room / line_height(ink.tick()))));
  double y = body.y + ink.tick().size;
  for (std::size_t index = 0; index < named.size(); ++index) {
    if (named.size() > most && index + 2 >= most && index + 1 < named.size()) {
      if (index + 2 == most) {
        canvas.text("…", {body.right() + 15, y}, ink.tick());
        y += line_height(ink.tick());
      }
      continue;
    }
    const auto& line = *named[index];
    const Colour colour = ink.mark(line.colour);
    const double x = body.right() + 4, middle = y - 0.3 * ink.tick().size;
    const std::array<Point, 2> stroke{{{x, middle}, {x + 8, middle}}};
    if (line.style == LinesPanel::Style::points || line.style == LinesPanel::Style::rings) {
      draw_mark(canvas, {x + 4, middle}, ink, colour, line.style);
    } else if (line.style == LinesPanel::Style::dashed) {
      draw_dashed(canvas, stroke, colour);
    } else {
      canvas.line(stroke, colour, 1.4);
      if (line.style == LinesPanel::Style::marked)
        draw_mark(canvas, {x + 4, middle}, ink, colour, line.style);
    }
    canvas.text(legend_name(line, ink, placement), {x + 11, y}, ink.tick());
    y += line_height(ink.tick());
  }
}

} // namespace

Surround surround(const LinesPanel& panel, const Ink& ink, const Placement& placement, const Extent& body) {
  return {widest_y_tick(panel, ink, body.height) + line_gap +
              (panel.y_label.empty() ? 0 : 1.3 * line_height(ink.tick())),
          std::max(legend_width(panel, ink, placement), 8.0), axis_room(panel, ink)};
}

double body_height(const LinesPanel& panel, const Ink& ink, double width) {
  return std::max(plot_aspect * width, legend_body(panel, ink));
}

void draw(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body) {
  const Range across = range_of(panel, false), up = range_of(panel, true);
  draw_frame(canvas, panel, ink, body, across, up);
  const PlotAxes axes = plot_axes(panel, body);
  for (const auto& line : panel.lines) draw_line(canvas, line, ink, axes);
  draw_point_labels(canvas, panel, ink, axes);
  draw_legend(canvas, panel, ink, placement, body);
  if (!panel.y_label.empty()) {
    const double x = body.x - line_gap - widest_y_tick(panel, ink, body.height) - 0.45 * ink.tick().size;
    draw_beside(canvas, panel.y_label, x, body, ink.tick());
  }
}

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

// The nearest point within about the height of a letter.
std::optional<PanelItem> item_at(const LinesPanel& panel, const Ink& ink, const Box& body, Point point) {
  const PlotAxes axes = plot_axes(panel, body);
  std::optional<PanelItem> nearest;
  double best = 1.1 * ink.size;
  for (std::size_t index = 0; index < panel.lines.size(); ++index) {
    const LinesPanel::Line& line = panel.lines[index];
    for (std::size_t place = 0; place < std::min(line.x.size(), line.y.size()); ++place) {
      if (!has_place(axes, line.x[place], line.y[place])) continue;
      const Point at = axes.at(line.x[place], line.y[place]);
      const double distance = std::hypot(at.x - point.x, at.y - point.y);
      if (!within(body, at) || !(distance < best)) continue;
      best = distance;
      nearest = PanelItem{index, place};
    }
  }
  return nearest;
}

std::optional<Box> box_of(const LinesPanel& panel, const Ink& ink, const Box& body, const PanelItem& item) {
  if (item.index >= panel.lines.size()) return {};
  const LinesPanel::Line& line = panel.lines[item.index];
  if (item.within >= std::min(line.x.size(), line.y.size())) return {};
  const PlotAxes axes = plot_axes(panel, body);
  if (!has_place(axes, line.x[item.within], line.y[item.within])) return {};
  const Point at = axes.at(line.x[item.within], line.y[item.within]);
  const double half = 0.3 * ink.size;
  return Box{at.x - half, at.y - half, 2 * half, 2 * half};
}

} // namespace hydrascope
