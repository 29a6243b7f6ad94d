// The pieces that several kinds of panel share: aligned text, cells, maps and photographs as pixels, colour
// bars.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/figures/page.h"
#include "engine/figures/panel_drawing.h"
#include "engine/figures/scale.h"

namespace hydrascope {
namespace {

constexpr double bar_distance = 5, thickness = 6, bar_tick_length = 2, tick_gap = 1.5;
constexpr double note_gap = 3;

// The scale's label, and whether it is logarithmic.
std::string bar_label(const Scale& scale) {
  return scale.logarithmic ? scale.label + " (logarithmic)" : scale.label;
}

Pixels gradient(const ColourTable& table, bool vertical) {
  Pixels pixels{vertical ? 1 : 256, vertical ? 256 : 1, {}};
  for (std::size_t index = 0; index < table.size(); ++index) {
    const auto& [red, green, blue] = table[vertical ? 255 - index : index];
    pixels.rgba.insert(pixels.rgba.end(), {red, green, blue, 255});
  }
  return pixels;
}

// Over all numbers of ticks: it depends on the bar's height, which is not known yet.
double widest_tick(const Scale& scale, const Ink& ink) {
  double widest = 0;
  for (int most = 2; most <= 6; ++most) {
    for (const auto& mark : ticks(scale.low, scale.high, scale.logarithmic, most)) {
      widest = std::max(widest, text_width(mark.text, ink.tick()));
    }
  }
  return widest;
}

constexpr std::int64_t smooth_side = 600; // pixels of an interpolated map's longer side, at least

// The value of a cell; beyond the map's edges that of the nearest cell.
double clamped_value(const Array& values, std::int64_t row, std::int64_t column) {
  const auto rows = values.extent(0), columns = values.extent(1);
  const auto index =
      std::clamp<std::int64_t>(row, 0, rows - 1) * columns + std::clamp<std::int64_t>(column, 0, columns - 1);
  return static_cast<double>(values.values[static_cast<std::size_t>(index)]);
}

// NaN neighbours make the result NaN: a masked cell is never filled by interpolation.
double bilinear(const Array& values, double row, double column) {
  row = std::clamp(row, 0.0, static_cast<double>(values.extent(0) - 1));
  column = std::clamp(column, 0.0, static_cast<double>(values.extent(1) - 1));
  const auto top = static_cast<std::int64_t>(row), left = static_cast<std::int64_t>(column);
  const double down = row - static_cast<double>(top), across = column - static_cast<double>(left);
  const auto at = [&](std::int64_t r, std::int64_t c) { return clamped_value(values, r, c); };
  const double upper = across > 0 ? at(top, left) * (1 - across) + at(top, left + 1) * across : at(top, left);
  if (down <= 0) {
    return upper;
  }
  const double lower =
      across > 0 ? at(top + 1, left) * (1 - across) + at(top + 1, left + 1) * across : at(top + 1, left);
  return upper * (1 - down) + lower * down;
}

// Weights of four cells in a row for a point `part` of the way from the second to the third.
std::array<double, 4> catmull_rom(double part) {
  const double square = part * part, cube = square * part;
  return {-0.5 * part + square - 0.5 * cube, 1 - 2.5 * square + 1.5 * cube,
          0.5 * part + 2 * square - 1.5 * cube, -0.5 * square + 0.5 * cube};
}

double bicubic(const Array& values, double row, double column) {
  const double top = std::floor(row), left = std::floor(column);
  const auto down = catmull_rom(row - top), across = catmull_rom(column - left);
  double sum = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) {
      sum += down[r] * across[c] *
             clamped_value(values, static_cast<std::int64_t>(top) + static_cast<std::int64_t>(r) - 1,
                           static_cast<std::int64_t>(left) + static_cast<std::int64_t>(c) - 1);
    }
  }
  // Beside a masked cell fewer neighbours are used, so that only the cell itself is left out.
  return std::isnan(sum) ? bilinear(values, row, column) : sum;
}

double between_cells(const Array& values, double row, double column, Interpolation interpolation) {
  return interpolation == Interpolation::bicubic ? bicubic(values, row, column)
                                                 : bilinear(values, row, column);
}

void set_pixel(std::uint8_t* target, const Scale& scale, const MapPaint& paint, double value) {
  if (std::isnan(value)) {
    return; // stays transparent
  }
  const double position = scale_position(scale, value);
  std::ranges::copy(paint.colours[entry_at(position)], target);
  const double share = paint.growing ? growing_opacity(scale.map, position) : 1;
  target[3] = static_cast<std::uint8_t>(std::lround(share * static_cast<double>(paint.opacity) * 255));
}

// Whether texts at their ticks' places leave room between them; `extent_of`: of a text along the axis.
template <typename ExtentOf>
bool fit_along(const std::vector<Tick>& marks, double length, const ExtentOf& extent_of) {
  for (std::size_t index = 1; index < marks.size(); ++index) {
    const double apart = (marks[index].position - marks[index - 1].position) * length;
    if (apart < (extent_of(marks[index - 1]) + extent_of(marks[index])) / 2) return false;
  }
  return true;
}

template <typename Fit>
std::vector<Tick> fitting_ticks(double low, double high, bool logarithmic, int most, const Fit& fit) {
  std::vector<Tick> marks;
  for (; most >= 2; --most) {
    marks = ticks(low, high, logarithmic, most);
    if (fit(marks)) return marks;
  }
  return {marks.front(), marks.back()};
}

} // namespace

bool fit_across(const std::vector<Tick>& marks, double width, const Ink& ink) {
  const double gap = 0.3 * ink.tick().size;
  return fit_along(marks, width, [&](const Tick& mark) { return text_width(mark.text, ink.tick()) + gap; });
}

std::vector<Tick> ticks_across(double low, double high, bool logarithmic, int most, double width,
                               const Ink& ink) {
  return fitting_ticks(low, high, logarithmic, most,
                       [&](const std::vector<Tick>& marks) { return fit_across(marks, width, ink); });
}

std::vector<Tick> ticks_up(double low, double high, bool logarithmic, int most, double height,
                           const Ink& ink) {
  return fitting_ticks(low, high, logarithmic, most, [&](const std::vector<Tick>& marks) {
    return fit_along(marks, height, [&](const Tick&) { return ink.tick().size; });
  });
}

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

double note_height(const std::string& note, const Ink& ink, double width) {
  return note.empty() ? 0
                      : note_gap + line_height(ink.note()) *
                                       static_cast<double>(wrap_text(note, ink.note(), width).size());
}

double draw_note(Canvas& canvas, const std::string& note, const Ink& ink, Point top_left, double width) {
  return draw_lines(canvas, wrap_text(note, ink.note(), width), {top_left.x, top_left.y + note_gap},
                    ink.note());
}

std::optional<PanelItem> largest_cell(const Array& values) {
  std::optional<PanelItem> found;
  float largest = 0;
  for (std::size_t at = 0; at < values.values.size(); ++at) {
    if (!(std::abs(values.values[at]) > largest)) continue; // NaN is skipped
    largest = std::abs(values.values[at]);
    const auto columns = static_cast<std::size_t>(values.extent(1));
    found = PanelItem{at / columns, at % columns};
  }
  return found;
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

void draw_hatch(Canvas& canvas, const Box& box, const Colour& colour) {
  constexpr double spacing = 3;
  // NOLINTNEXTLINE(bugprone-float-loop-counter): whole multiples, exact
  for (double offset = spacing; offset < box.width + box.height; offset += spacing) {
    // The line x + y = offset, cut to the box.
    const double x0 = std::max(0.0, offset - box.height);
    const double x1 = std::min(box.width, offset);
    const std::array<Point, 2> ends{{{box.x + x0, box.y + offset - x0}, {box.x + x1, box.y + offset - x1}}};
    canvas.line(ends, colour, 0.35);
  }
}

Ink page_ink(const FigureStyle& style) {
  Ink ink;
  ink.size = style.font_points;
  if (!style.dark) return ink;
  ink.text = {0.875f, 0.886f, 0.906f, 1};
  ink.muted = {0.565f, 0.588f, 0.631f, 1};
  ink.rule = {0.350f, 0.370f, 0.410f, 1};
  ink.grid = {0.157f, 0.165f, 0.188f, 1};
  ink.accent = {0.310f, 0.620f, 0.930f, 1};
  ink.ground = {0.078f, 0.082f, 0.094f, 1};
  ink.shade = {0.118f, 0.125f, 0.141f, 1};
  ink.contrast = 3;
  return ink;
}

Pixels map_pixels(const Array& values, const Scale& scale, const MapPaint& paint) {
  const bool smooth = paint.interpolation != Interpolation::nearest;
  const auto rows = values.extent(0), columns = values.extent(1);
  const auto longer = std::max<std::int64_t>({rows, columns, 1});
  const auto factor = smooth ? std::max<std::int64_t>(1, (smooth_side + longer - 1) / longer) : 1;
  const auto height = rows * factor, width = columns * factor;
  Pixels pixels{static_cast<int>(width), static_cast<int>(height), {}};
  pixels.rgba.resize(static_cast<std::size_t>(width * height * 4));
  const auto centre = [&](std::int64_t pixel) {
    return (static_cast<double>(pixel) + 0.5) / static_cast<double>(factor) - 0.5;
  };
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* const line = pixels.rgba.data() + y * width * 4;
    for (std::int64_t x = 0; x < width; ++x) {
      const auto cell = static_cast<std::size_t>(y * columns + x); // of a map that is not interpolated
      set_pixel(line + x * 4, scale, paint,
                smooth ? between_cells(values, centre(y), centre(x), paint.interpolation)
                       : static_cast<double>(values.values[cell]));
    }
  }
  return pixels;
}

Pixels photograph_pixels(const Image& image, int max_pixels) {
  Pixels pixels{image.width, image.height, {}};
  pixels.rgba.reserve(image.rgb.size() / 3 * 4);
  for (std::size_t position = 0; position + 2 < image.rgb.size(); position += 3) {
    pixels.rgba.insert(pixels.rgba.end(),
                       {image.rgb[position], image.rgb[position + 1], image.rgb[position + 2], 255});
  }
  const int longer = std::max(image.width, image.height);
  if (longer <= max_pixels) {
    return pixels;
  }
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(1.0 * side * max_pixels / longer)));
  };
  return shrink(pixels, scaled(image.width), scaled(image.height));
}

// The text in two parts of about the same length, broken at a space; in one if it has none.
std::vector<std::string> halves(const std::string& text) {
  std::size_t best = std::string::npos;
  const auto from_middle = [&](std::size_t at) {
    return std::max(at, text.size() - at) - std::min(at, text.size() - at);
  };
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    if (best == std::string::npos || from_middle(at) < from_middle(best)) {
      best = at;
    }
  }
  if (best == std::string::npos) {
    return {text};
  }
  return {text.substr(0, best), text.substr(best + 1)};
}

void draw_beside(Canvas& canvas, const std::string& text, double x, const Box& box, TextStyle style) {
  constexpr double least_size = 0.6, overhang = 1.1; // of the style's size; of the box's height
  const double room = overhang * box.height, width = text_width(text, style);
  if (least_size * width > room) return;
  if (width > room) style.size *= room / width;
  canvas.text(text, {x, box.y + box.height / 2 + text_width(text, style) / 2}, style, 90);
}

double vertical_bar_room(const Scale& scale, const Ink& ink) {
  return bar_distance + thickness + bar_tick_length + tick_gap + widest_tick(scale, ink) +
         (scale.label.empty() ? 0 : 2 + line_height(ink.tick()));
}

void draw_vertical_bar(Canvas& canvas, const Scale& scale, Backdrop backdrop, const Ink& ink,
                       const Box& beside) {
  const int most = std::clamp(static_cast<int>(beside.height / (2.2 * ink.size)), 2, 6);
  const auto marks = ticks(scale.low, scale.high, scale.logarithmic, most);
  const Box bar{beside.right() + bar_distance, beside.y, thickness, beside.height};
  canvas.image(gradient(colours_on(ink.ground, scale.map, backdrop), true), bar, true);
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
  // The label reads upwards along the bar; one that is longer than the bar is set smaller, and in two lines
  // where that is not enough.
  constexpr double least_size = 0.6;
  TextStyle style = ink.tick();
  const double room = beside.height * 1.15;
  std::vector<std::string> lines{bar_label(scale)};
  if (least_size * text_width(lines.front(), style) > room) {
    lines = halves(lines.front());
    style.size *= least_size;
  }
  double longest = 0;
  for (const std::string& line : lines) {
    longest = std::max(longest, text_width(line, style));
  }
  if (longest > room) {
    style.size *= std::max(least_size, room / longest);
  }
  double widest = 0;
  for (const auto& mark : marks) {
    widest = std::max(widest, text_width(mark.text, ink.tick()));
  }
  double x =
      bar.right() + bar_tick_length + tick_gap + widest + 2 + line_height(ink.tick()) - 0.25 * style.size;
  for (; !lines.empty(); lines.pop_back(), x -= 1.3 * style.size) {
    canvas.text(lines.back(), {x, bar.y + bar.height / 2 + text_width(lines.back(), style) / 2}, style, 90);
  }
}

double horizontal_bar_room(const Ink& ink) {
  return bar_distance + thickness + bar_tick_length + 1.2 * ink.size;
}

void draw_horizontal_bar(Canvas& canvas, const Scale& scale, Backdrop backdrop, const Ink& ink,
                         Point top_left, double width) {
  const std::string label = bar_label(scale);
  const double label_width = label.empty() ? 0 : text_width(label, ink.tick()) + 6;
  const double length = std::min(140.0, std::max(40.0, width - label_width));
  const Box bar{top_left.x, top_left.y + bar_distance, length, thickness};
  canvas.image(gradient(colours_on(ink.ground, scale.map, backdrop), false), bar, true);
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
