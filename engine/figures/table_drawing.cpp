// Tables: rules above and below, numbers aligned at their decimal point, the best of a column in bold.
#include <algorithm>
#include <array>

#include "engine/figures/numbers.h"
#include "engine/figures/panel_drawing.h"

namespace hydrascope {
namespace {

double row_height(const Ink& ink) { return 1.45 * line_height(ink.label()); }

std::vector<double> column_widths(const TablePanel& panel, const std::vector<std::vector<TableCell>>& cells,
                                  const Ink& ink) {
  TextStyle bold = ink.label();
  bold.bold = true;
  std::vector<double> widths(panel.columns.size() + 1, 0);
  widths[0] = text_width(panel.row_name, bold);
  for (const auto& row : panel.rows) widths[0] = std::max(widths[0], text_width(row, ink.label()));
  for (std::size_t column = 0; column < panel.columns.size(); ++column) {
    double& width = widths[column + 1];
    width = text_width(panel.columns[column].name, bold);
    for (const auto& row : cells) width = std::max(width, text_width(row[column].text, bold));
  }
  return widths;
}

struct Columns {
  double shrink = 1;         // of the text
  std::vector<double> right; // of each column, the rows' names first
};

// Distributes the spare width between the columns; a table that is too wide for its page is drawn smaller.
Columns columns_of(const TablePanel& panel, const std::vector<std::vector<TableCell>>& cells, const Ink& ink,
                   const Box& body) {
  const std::vector<double> widths = column_widths(panel, cells, ink);
  double natural = 0;
  for (const double width : widths) natural += width;
  Columns columns;
  columns.shrink = std::min(1.0, body.width / (natural + ink.size * static_cast<double>(widths.size() - 1)));
  const double gap = widths.size() > 1 ? std::min(3 * ink.size, (body.width - natural * columns.shrink) /
                                                                    static_cast<double>(widths.size() - 1))
                                       : 0;
  columns.right.push_back(body.x + widths[0] * columns.shrink);
  for (std::size_t column = 1; column < widths.size(); ++column)
    columns.right.push_back(columns.right.back() + gap + widths[column] * columns.shrink);
  return columns;
}

} // namespace

Surround surround(const TablePanel& panel, const Ink& ink, const Placement&, const Extent& body) {
  return {0, 0, note_height(panel.note, ink, body.width)};
}

double body_height(const TablePanel& panel, const Ink& ink, double) {
  return row_height(ink) * static_cast<double>(panel.rows.size() + 1);
}

void draw(Canvas& canvas, const TablePanel& panel, const Ink& ink, const Placement&, const Box& body) {
  const auto cells = table_cells(panel);
  const auto [shrink, right] = columns_of(panel, cells, ink, body);
  const auto style_of = [&, shrink = shrink](bool bold) {
    TextStyle style = ink.label();
    style.size *= shrink;
    style.bold = bold;
    return style;
  };
  const double pitch = row_height(ink);
  const auto baseline = [&, shrink = shrink](std::size_t line) {
    return body.y + pitch * (static_cast<double>(line) + 0.5) + 0.36 * ink.size * shrink;
  };
  canvas.text(panel.row_name, {body.x, baseline(0)}, style_of(true));
  for (std::size_t column = 0; column < panel.columns.size(); ++column)
    draw_aligned(canvas, panel.columns[column].name, {right[column + 1], baseline(0)}, style_of(true),
                 Align::right);
  for (std::size_t row = 0; row < panel.rows.size(); ++row) {
    canvas.text(panel.rows[row], {body.x, baseline(row + 1)}, style_of(false));
    for (std::size_t column = 0; column < panel.columns.size(); ++column) {
      const TableCell& cell = cells[row][column];
      draw_aligned(canvas, cell.text, {right[column + 1], baseline(row + 1)}, style_of(cell.best),
                   Align::right);
    }
  }
  for (const double y : {body.y, body.y + pitch, body.bottom()})
    canvas.line(std::array<Point, 2>{{{body.x, y}, {right.back(), y}}}, ink.text,
                y == body.y + pitch ? 0.4 : 0.8);
  draw_note(canvas, panel.note, ink, {body.x, body.bottom()}, body.width);
}

std::optional<PanelItem> item_at(const TablePanel& panel, const Ink& ink, const Box& body, Point point) {
  const auto right = columns_of(panel, table_cells(panel), ink, body).right;
  const double line = (point.y - body.y) / row_height(ink);
  if (line < 1 || line >= static_cast<double>(panel.rows.size() + 1) || point.x < body.x) return {};
  const auto column = std::ranges::lower_bound(right, point.x);
  if (column == right.begin() || column == right.end()) return {}; // a row's name, or beside the table
  return PanelItem{static_cast<std::size_t>(line) - 1, static_cast<std::size_t>(column - right.begin()) - 1};
}

std::optional<Box> box_of(const TablePanel& panel, const Ink& ink, const Box& body, const PanelItem& item) {
  if (item.index >= panel.rows.size() || item.within >= panel.columns.size()) return {};
  const auto right = columns_of(panel, table_cells(panel), ink, body).right;
  const double left = right[item.within];
  return Box{left, body.y + row_height(ink) * static_cast<double>(item.index + 1),
             right[item.within + 1] - left, row_height(ink)};
}

} // namespace hydrascope
