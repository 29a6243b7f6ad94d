// Lines over x, and points in a plane.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double line_gap = 3;

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

// Whole-number ticks where all x are whole numbers (layers, steps).
std::vector<Tick> across_ticks(const LinesPanel& panel, const Ink& ink, const Scale& across, double width) {
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

void draw_frame(Canvas& canvas, const LinesPanel& panel, const Ink& ink, const Box& body, const Scale& across,
                const Scale& up) {
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
  const Scale up = plot_axes(panel, {}).up;
  double widest = 0;
  for (const auto& mark : ticks_up(up.low, up.high, panel.log_y, 6, height, ink)) {
    widest = std::max(widest, text_width(mark.text, ink.tick()));
  }
  return widest;
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
  const PlotAxes axes = plot_axes(panel, body);
  draw_frame(canvas, panel, ink, body, axes.across, axes.up);
  for (const auto& line : panel.lines) draw_line(canvas, line, ink, axes);
  draw_point_labels(canvas, panel, ink, axes);
  draw_legend(canvas, panel, ink, placement, body);
  if (!panel.y_label.empty()) {
    const double x = body.x - line_gap - widest_y_tick(panel, ink, body.height) - 0.45 * ink.tick().size;
    draw_beside(canvas, panel.y_label, x, body, ink.tick());
  }
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
