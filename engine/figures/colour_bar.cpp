// Colour bars and aligned text: the pieces that several kinds of panel share.
#include <algorithm>
#include <array>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double bar_distance = 5, thickness = 6, bar_tick_length = 2, tick_gap = 1.5;

// The scale's name, with what a reader must know of it.
std::string bar_label(const Scale& scale) {
  return scale.logarithmic ? scale.label + " (logarithmic)" : scale.label;
}

Pixels gradient(const Scale& scale, bool vertical) {
  const auto table = colour_table(scale.map);
  Pixels pixels{vertical ? 1 : 256, vertical ? 256 : 1, {}};
  for (std::size_t index = 0; index < table.size(); ++index) {
    const auto& [red, green, blue] = table[vertical ? 255 - index : index];
    pixels.rgba.insert(pixels.rgba.end(), {red, green, blue, 255});
  }
  return pixels;
}

// How many numbers stand beside a bar depends on its height, which is not known when its room is asked for.
double widest_tick(const Scale& scale, const Ink& ink) {
  double widest = 0;
  for (int most = 2; most <= 6; ++most) {
    for (const auto& mark : ticks(scale.low, scale.high, scale.logarithmic, most)) {
      widest = std::max(widest, text_width(mark.text, ink.tick()));
    }
  }
  return widest;
}

} // namespace

void draw_aligned(Canvas& canvas, std::string_view text, Point baseline, const TextStyle& style,
                  Align align) {
  const double width = align == Align::left ? 0 : text_width(text, style);
  const double shift = align == Align::right ? width : align == Align::centre ? width / 2 : 0;
  canvas.text(text, {baseline.x - shift, baseline.y}, style);
}

double draw_lines(Canvas& canvas, const std::vector<std::string>& lines, Point top, const TextStyle& style,
                  Align align) {
  double y = top.y;
  for (const auto& line : lines) {
    draw_aligned(canvas, line, {top.x, y + ascent(style) + 0.16 * style.size}, style, align);
    y += line_height(style);
  }
  return y - top.y;
}

bool contains(const Box& box, Point point) {
  return point.x >= box.x && point.x < box.right() && point.y >= box.y && point.y < box.bottom();
}

std::optional<PanelItem> cell_at(const Array& values, const Box& body, Point point) {
  if (!contains(body, point)) return {};
  const auto along = [](double share, std::int64_t count) {
    return static_cast<std::size_t>(share * static_cast<double>(count));
  };
  return PanelItem{along((point.y - body.y) / body.height, values.extent(0)),
                   along((point.x - body.x) / body.width, values.extent(1))};
}

std::optional<Box> cell_box(const Array& values, const Box& body, const PanelItem& item) {
  const auto rows = values.extent(0), columns = values.extent(1);
  if (item.index >= static_cast<std::size_t>(rows) || item.within >= static_cast<std::size_t>(columns))
    return {};
  const double width = body.width / static_cast<double>(columns);
  const double height = body.height / static_cast<double>(rows);
  return Box{body.x + static_cast<double>(item.within) * width,
             body.y + static_cast<double>(item.index) * height, width, height};
}

double vertical_bar_room(const Scale& scale, const Ink& ink) {
  return bar_distance + thickness + bar_tick_length + tick_gap + widest_tick(scale, ink) +
         (scale.label.empty() ? 0 : 2 + line_height(ink.tick()));
}

void draw_vertical_bar(Canvas& canvas, const Scale& scale, const Ink& ink, const Box& beside) {
  const int most = std::clamp(static_cast<int>(beside.height / (2.2 * ink.size)), 2, 6);
  const auto marks = ticks(scale.low, scale.high, scale.logarithmic, most);
  const Box bar{beside.right() + bar_distance, beside.y, thickness, beside.height};
  canvas.image(gradient(scale, true), bar, true);
  canvas.outline(bar, ink.rule, 0.4);
  for (const auto& mark : marks) {
    const double y = bar.bottom() - mark.position * bar.height;
    const std::array<Point, 2> tick{{{bar.right(), y}, {bar.right() + bar_tick_length, y}}};
    canvas.line(tick, ink.rule, 0.4);
    canvas.text(mark.text, {bar.right() + bar_tick_length + tick_gap, y + 0.36 * ink.tick().size},
                ink.tick());
  }
  if (scale.label.empty()) {
    return;
  }
  // The label reads upwards along the bar; one that is longer than the bar is set smaller rather than cut
  // off.
  TextStyle style = ink.tick();
  const std::string label = bar_label(scale);
  const double length = text_width(label, style);
  const double room = beside.height * 1.15;
  if (length > room) {
    style.size *= std::max(0.6, room / length);
  }
  double widest = 0;
  for (const auto& mark : marks) {
    widest = std::max(widest, text_width(mark.text, ink.tick()));
  }
  const double x =
      bar.right() + bar_tick_length + tick_gap + widest + 2 + line_height(ink.tick()) - 0.25 * style.size;
  canvas.text(label, {x, bar.y + bar.height / 2 + text_width(label, style) / 2}, style, 90);
}

double horizontal_bar_room(const Ink& ink) {
  return bar_distance + thickness + bar_tick_length + 1.2 * ink.size;
}

void draw_horizontal_bar(Canvas& canvas, const Scale& scale, const Ink& ink, Point top_left, double width) {
  const std::string label = bar_label(scale);
  const double label_width = label.empty() ? 0 : text_width(label, ink.tick()) + 6;
  const double length = std::min(140.0, std::max(40.0, width - label_width));
  const Box bar{top_left.x, top_left.y + bar_distance, length, thickness};
  canvas.image(gradient(scale, false), bar, true);
  canvas.outline(bar, ink.rule, 0.4);
  for (const auto& mark : ticks(scale.low, scale.high, scale.logarithmic, 5)) {
    const double x = bar.x + mark.position * bar.width;
    const std::array<Point, 2> tick{{{x, bar.bottom()}, {x, bar.bottom() + bar_tick_length}}};
    canvas.line(tick, ink.rule, 0.4);
    const double half = text_width(mark.text, ink.tick()) / 2;
    const double centre = std::max(x, top_left.x + half);
    draw_aligned(canvas, mark.text, {centre, bar.bottom() + bar_tick_length + 0.95 * ink.tick().size},
                 ink.tick(), Align::centre);
  }
  canvas.text(label, {bar.right() + 6, bar.y + thickness / 2 + 0.36 * ink.tick().size}, ink.tick());
}

} // namespace hydrascope
