#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

constexpr double tick_length = 2, label_gap = 2;
constexpr std::size_t max_named = 48; // more rows or columns are numbered instead

enum class Labels { none, numbers, upright, turned };

struct AxisLabels {
  Labels kind = Labels::numbers;
  TextStyle style;
  double room = 0; // across the axis, ticks included
};

double widest(const std::vector<std::string>& labels, const TextStyle& style) {
  double width = 0;
  for (const auto& label : labels) {
    width = std::max(width, text_width(label, style));
  }
  return width;
}

// Names along an axis as large as the cells allow; numbers where names would be too small to read.
AxisLabels axis_labels(const std::vector<std::string>& names, std::int64_t count, double cell, bool rows,
                       const Ink& ink) {
  AxisLabels labels;
  labels.style = ink.tick();
  const bool one_each = names.size() == static_cast<std::size_t>(count) && names.size() <= max_named;
  const double readable = 0.5 * ink.size;
  if (one_each && cell * 0.92 >= readable) {
    labels.style = ink.token();
    labels.style.size = std::min(labels.style.size, cell * 0.92);
    const double width = widest(names, labels.style);
    labels.kind = rows || width <= cell * 0.96 ? Labels::upright : Labels::turned;
    labels.room =
        tick_length + label_gap + (rows || labels.kind == Labels::turned ? width : labels.style.size);
    return labels;
  }
  const auto last = std::to_string(std::max<std::int64_t>(count - 1, 0));
  labels.room = tick_length + label_gap + (rows ? text_width(last, labels.style) : labels.style.size);
  return labels;
}

std::vector<Tick> index_ticks(std::int64_t count, double length, const Ink& ink) {
  if (count <= 1) {
    return {{0.5, "0"}};
  }
  const auto fits = std::max<std::int64_t>(2, static_cast<std::int64_t>(length / (3.2 * ink.size)));
  int most = static_cast<int>(std::min(count, fits)); // more would be numbers between cells
  const auto between_cells = [](const Tick& mark) { return mark.text.find('.') != std::string::npos; };
  auto marks = ticks(0, static_cast<double>(count - 1), false, most);
  while (most > 2 && std::ranges::any_of(marks, between_cells)) // 2.5 apart
    marks = ticks(0, static_cast<double>(count - 1), false, --most);
  for (auto& mark : marks) { // from the first and last cell's centres to the axis' ends
    mark.position = (mark.position * static_cast<double>(count - 1) + 0.5) / static_cast<double>(count);
  }
  return marks;
}

std::vector<Tick> axis_ticks(const AxisLabels& labels, const std::vector<std::string>& names,
                             std::int64_t count, double length, const Ink& ink) {
  if (labels.kind == Labels::numbers) {
    return index_ticks(count, length, ink);
  }
  std::vector<Tick> marks;
  for (std::size_t index = 0; index < names.size(); ++index) {
    marks.push_back({(static_cast<double>(index) + 0.5) / static_cast<double>(count), names[index]});
  }
  return marks;
}

std::vector<Tick> number_ticks(const Axis& axis, double length, const Ink& ink) {
  return ticks(axis.low, axis.high, axis.logarithmic,
               std::clamp(static_cast<int>(length / (5 * ink.size)), 2, 6));
}

AxisLabels number_labels(const Axis& axis, double length, bool rows, const Ink& ink) {
  AxisLabels labels;
  labels.style = ink.tick();
  double width = 0;
  for (const Tick& mark : number_ticks(axis, length, ink))
    width = std::max(width, text_width(mark.text, labels.style));
  labels.room = tick_length + label_gap + (rows ? width : labels.style.size);
  return labels;
}

AxisLabels row_labels(const HeatMapPanel& panel, const Ink& ink, double height) {
  if (panel.y_axis) return number_labels(*panel.y_axis, height, true, ink);
  const double cell = height / static_cast<double>(panel.values.extent(0));
  return axis_labels(panel.y_ticks, panel.values.extent(0), cell, true, ink);
}

AxisLabels column_labels(const HeatMapPanel& panel, const Ink& ink, double width) {
  if (panel.x_axis) return number_labels(*panel.x_axis, width, false, ink);
  const double cell = width / static_cast<double>(panel.values.extent(1));
  return axis_labels(panel.x_ticks, panel.values.extent(1), cell, false, ink);
}

double square_room(const HeatMapPanel& panel, const Ink& ink) {
  return panel.row_colours.empty() ? 0 : 0.9 * ink.size;
}

void draw_rows_axis(Canvas& canvas, const HeatMapPanel& panel, const Ink& ink, const Box& body) {
  const auto labels = row_labels(panel, ink, body.height);
  const auto marks = panel.y_axis
                         ? number_ticks(*panel.y_axis, body.height, ink)
                         : axis_ticks(labels, panel.y_ticks, panel.values.extent(0), body.height, ink);
  for (const auto& mark : marks) { // numbers grow upwards, rows are counted downwards
    const double y =
        panel.y_axis ? body.bottom() - mark.position * body.height : body.y + mark.position * body.height;
    const std::array<Point, 2> tick{{{body.x - tick_length, y}, {body.x, y}}};
    canvas.line(tick, ink.rule, 0.4);
    draw_aligned(canvas, mark.text, {body.x - tick_length - label_gap, y + 0.36 * labels.style.size},
                 labels.style, Align::right);
  }
  if (!panel.y_label.empty()) {
    const double x = body.x - labels.room - square_room(panel, ink) - 0.45 * ink.tick().size;
    draw_beside(canvas, panel.y_label, x, body, ink.tick());
  }
}

void draw_columns_axis(Canvas& canvas, const HeatMapPanel& panel, const Ink& ink, const Box& body) {
  const auto labels = column_labels(panel, ink, body.width);
  const auto marks = panel.x_axis
                         ? number_ticks(*panel.x_axis, body.width, ink)
                         : axis_ticks(labels, panel.x_ticks, panel.values.extent(1), body.width, ink);
  for (const auto& mark : marks) {
    const double x = body.x + mark.position * body.width;
    const std::array<Point, 2> tick{{{x, body.bottom()}, {x, body.bottom() + tick_length}}};
    canvas.line(tick, ink.rule, 0.4);
    const double top = body.bottom() + tick_length + label_gap;
    if (labels.kind == Labels::turned) {
      canvas.text(mark.text, {x + 0.36 * labels.style.size, top + text_width(mark.text, labels.style)},
                  labels.style, 90);
    } else {
      draw_aligned(canvas, mark.text, {x, top + ascent(labels.style)}, labels.style, Align::centre);
    }
  }
  if (!panel.x_label.empty()) {
    const double y = body.bottom() + labels.room + 1.1 * line_height(ink.tick());
    draw_aligned(canvas, panel.x_label, {body.x + body.width / 2, y}, ink.tick(), Align::centre);
  }
}

// Black or white, whichever is readable on this colour.
Colour ink_upon(const Colour& ground) {
  return relative_luminance(ground) > 0.18 ? Colour{0.05f, 0.05f, 0.06f, 1} : Colour{0.95f, 0.95f, 0.96f, 1};
}

void draw_squares(Canvas& canvas, const HeatMapPanel& panel, const Ink& ink, const Box& body, double labels) {
  const double cell = body.height / static_cast<double>(panel.values.extent(0));
  const double side = std::min(0.55 * ink.size, 0.9 * cell);
  const double x = body.x - labels - square_room(panel, ink);
  for (std::size_t row = 0; row < panel.row_colours.size(); ++row) {
    const double y = body.y + (static_cast<double>(row) + 0.5) * cell;
    canvas.fill({x, y - side / 2, side, side}, ink.mark(panel.row_colours[row]), 1);
  }
}

void draw_numbers(Canvas& canvas, const HeatMapPanel& panel, const ColourTable& colours, const Ink& ink,
                  const Box& body) {
  const auto rows = panel.values.extent(0), columns = panel.values.extent(1);
  const double width = body.width / static_cast<double>(columns);
  const double height = body.height / static_cast<double>(rows);
  TextStyle style = ink.tick();
  style.face = Face::mono;
  double longest = 0;
  for (const float value : panel.values.values)
    longest = std::max(longest, text_width(decimal_text(static_cast<double>(value), *panel.decimals), style));
  if (width < longest + 3 || height < line_height(style)) return;
  for (std::size_t index = 0; index < panel.values.values.size(); ++index) {
    const auto value = static_cast<double>(panel.values.values[index]);
    if (std::isnan(value)) continue;
    const auto row = static_cast<std::int64_t>(index) / columns,
               column = static_cast<std::int64_t>(index) % columns;
    style.colour = ink_upon(colour_at(colours, scale_position(panel.scale, value)));
    draw_aligned(canvas, decimal_text(value, *panel.decimals),
                 {body.x + (static_cast<double>(column) + 0.5) * width,
                  body.y + (static_cast<double>(row) + 0.5) * height + 0.36 * style.size},
                 style, Align::centre);
  }
}

double axis_room_below(const HeatMapPanel& panel, const Ink& ink, double width) {
  return column_labels(panel, ink, width).room + (panel.x_label.empty() ? 0 : 1.35 * line_height(ink.tick()));
}

} // namespace

Surround surround(const HeatMapPanel& panel, const Ink& ink, const Placement& placement, const Extent& body) {
  Surround room{tick_length, 2, 0};
  if (panel.values.empty()) {
    return {0, 0, note_height(panel.note, ink, body.width)};
  }
  if (placement.names_rows) {
    room.left = square_room(panel, ink) + row_labels(panel, ink, body.height).room +
                (panel.y_label.empty() ? 0 : 1.3 * line_height(ink.tick()));
  }
  if (placement.own_bar) {
    room.right = vertical_bar_room(panel.scale, ink);
  }
  room.below = axis_room_below(panel, ink, body.width) + note_height(panel.note, ink, body.width);
  return room;
}

double body_height(const HeatMapPanel& panel, const Ink& ink, double width) {
  if (panel.values.empty()) {
    return 2 * ink.size;
  }
  const double aspect =
      static_cast<double>(panel.values.extent(0)) / static_cast<double>(panel.values.extent(1));
  // Limits the aspect, so that a few rows of many keys stay visible and a table of layers is not taller than
  // wide. The cells are then not square.
  return width * std::clamp(aspect, 0.12, 1.0);
}

void draw(Canvas& canvas, const HeatMapPanel& panel, const Ink& ink, const Placement& placement,
          const Box& body) {
  if (panel.values.empty()) {
    draw_lines(canvas, wrap_text(panel.note, ink.note(), body.width), {body.x, body.y}, ink.note());
    return;
  }
  const bool missing = std::any_of(panel.values.values.begin(), panel.values.values.end(),
                                   [](float value) { return std::isnan(value); });
  if (missing && panel.missing == MissingCells::hatched) draw_hatch(canvas, body, ink.rule);
  if (missing && panel.missing == MissingCells::grey) canvas.fill(body, ink.shade);
  const ColourTable colours = colours_on(ink.ground, panel.scale.map, Backdrop::matrix);
  canvas.image(map_pixels(panel.values, panel.scale, {.colours = colours}), body, false);
  if (panel.decimals) draw_numbers(canvas, panel, colours, ink, body);
  canvas.outline(body, ink.rule, 0.5);
  if (placement.names_rows) {
    draw_rows_axis(canvas, panel, ink, body);
    draw_squares(canvas, panel, ink, body, row_labels(panel, ink, body.height).room);
  }
  draw_columns_axis(canvas, panel, ink, body);
  const double cell = body.height / static_cast<double>(panel.values.extent(0));
  for (const int row : panel.marks) {
    const double y = body.y + (row + 0.5) * cell;
    const double half = std::clamp(cell / 2, 1.2, 1.8);
    const std::array<Point, 3> arrow{
        {{body.x - 0.3, y}, {body.x - 2 * half, y - half}, {body.x - 2 * half, y + half}}};
    canvas.polygon(arrow, ink.accent);
  }
  if (placement.own_bar) {
    draw_vertical_bar(canvas, panel.scale, Backdrop::matrix, ink, body);
  }
  draw_note(canvas, panel.note, ink, {body.x, body.bottom() + axis_room_below(panel, ink, body.width)},
            body.width);
}

std::optional<PanelItem> item_at(const HeatMapPanel& panel, const Ink&, const Box& body, Point point) {
  return panel.values.empty() ? std::nullopt : cell_at(panel.values, body, point);
}

std::optional<Box> box_of(const HeatMapPanel& panel, const Ink&, const Box& body, const PanelItem& item) {
  return panel.values.empty() ? std::nullopt : cell_box(panel.values, body, item);
}

} // namespace hydrascope
