#include "engine/figures/layout.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr double column_gap = 9, row_gap = 9;

bool same_scale(const Scale& a, const Scale& b) {
  return a.map == b.map && a.low == b.low && a.high == b.high && a.logarithmic == b.logarithmic &&
         a.label == b.label;
}

// The scale that all panels of a figure share, if it says so and there are at least two of them.
const Scale* shared_scale(const Figure& figure) {
  const Scale* shared = nullptr;
  int count = 0;
  for (const auto& panel : figure.panels) {
    const Scale* const scale = scale_of(panel);
    if (scale == nullptr) {
      continue;
    }
    if (!scale->shared || (shared != nullptr && !same_scale(*scale, *shared))) {
      return nullptr;
    }
    shared = shared == nullptr ? scale : shared;
    ++count;
  }
  return count > 1 ? shared : nullptr;
}

bool any_tokens(const Figure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(),
                     [](const FigurePanel& panel) { return std::holds_alternative<TokensPanel>(panel); });
}

// The panel to the left in the same row names the same rows.
bool repeats_rows(const Figure& figure, std::size_t index, std::size_t columns) {
  if (index % columns == 0) {
    return false;
  }
  const auto* const panel = std::get_if<HeatMapPanel>(&figure.panels[index]);
  const auto* const left = std::get_if<HeatMapPanel>(&figure.panels[index - 1]);
  return panel != nullptr && left != nullptr && !panel->values.empty() && !left->values.empty() &&
         panel->y_ticks == left->y_ticks && panel->y_label == left->y_label &&
         panel->values.extent(0) == left->values.extent(0);
}

// The panel to the right in the same row is coloured by the same scale, whose bar stands there.
bool repeats_scale(const Figure& figure, std::size_t index, std::size_t columns) {
  if (index % columns + 1 == columns || index + 1 == figure.panels.size()) return false;
  const Scale* const scale = scale_of(figure.panels[index]);
  const Scale* const right = scale_of(figure.panels[index + 1]);
  return scale != nullptr && right != nullptr && scale->shared && right->shared && same_scale(*scale, *right);
}

// The most height of a body, so that small multiples and single panels do not fill a page.
double height_limit(const FigureStyle& style, std::size_t columns) {
  const double width = style.width_mm / 25.4 * 72;
  return columns == 1 ? std::max(0.5 * width, std::min(width, 220.0)) : width;
}

// The height of a panel's body that is as wide as this.
using BodyHeight = std::function<double(const PlacedPanel&, double width)>;

struct Grid {
  std::size_t columns = 1, rows = 1;
  std::vector<double> left, right; // of each column
  double body_width = 0;
  bool fits = true; // false: the bodies are as narrow as can be, and the columns still too wide together
};

// Surrounds depend a little on the body's width (labels shrink with their cells), so the width is found in
// two rounds.
Grid fit_columns(const Figure& figure, const Layout& layout, std::size_t columns, double available,
                 const BodyHeight& height_of) {
  constexpr double least_width = 12;
  Grid grid;
  grid.columns = columns;
  grid.rows = (figure.panels.size() + columns - 1) / columns;
  const double gaps = column_gap * static_cast<double>(columns - 1);
  double width = 0.7 * (available - gaps) / static_cast<double>(columns);
  for (int round = 0; round < 3; ++round) {
    grid.left.assign(columns, 0);
    grid.right.assign(columns, 0);
    for (const auto& placed : layout.panels) {
      const auto room = surround(figure.panels[placed.index], layout.ink, placed.placement,
                                 {width, height_of(placed, width)});
      const auto column = placed.index % columns;
      grid.left[column] = std::max(grid.left[column], room.left);
      grid.right[column] = std::max(grid.right[column], room.right);
    }
    double around = gaps;
    for (std::size_t column = 0; column < columns; ++column) {
      around += grid.left[column] + grid.right[column];
    }
    width = (available - around) / static_cast<double>(columns);
    grid.fits = width >= least_width;
    width = std::max(least_width, width);
  }
  grid.body_width = width;
  return grid;
}

// Places the panels row by row from `top`. Returns the y below the last row.
double place_rows(const Figure& figure, Layout& layout, const Grid& grid, double top,
                  const BodyHeight& height_of, bool titled = true) {
  double y = top;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const auto first = row * grid.columns;
    const auto last = std::min(first + grid.columns, layout.panels.size());
    double titles = 0, bodies = 0, below = 0, x = layout.margin;
    for (auto index = first; index < last; ++index) {
      auto& placed = layout.panels[index];
      const auto& panel = figure.panels[index];
      const auto column = index - first;
      const double slot = grid.left[column] + grid.body_width + grid.right[column];
      if (titled)
        placed.title_lines =
            wrap_text(title_of(panel), layout.ink.panel_title(), slot - grid.left[column] + 0.5 * column_gap);
      placed.body = {x + grid.left[column], 0, grid.body_width, height_of(placed, grid.body_width)};
      placed.title = {placed.body.x, y};
      double height = 0;
      for (std::size_t line = 0; line < placed.title_lines.size(); ++line) {
        height += line_height(line == 0 ? layout.ink.panel_title() : layout.ink.note());
      }
      titles = std::max(titles, height > 0 ? height + 2 : 0);
      bodies = std::max(bodies, placed.body.height);
      const Extent body{placed.body.width, placed.body.height};
      below = std::max(below, body.height + surround(panel, layout.ink, placed.placement, body).below);
      x += slot + column_gap;
    }
    for (auto index = first; index < last; ++index) {
      layout.panels[index].body.y = y + titles;
    }
    y += titles + std::max(bodies, below) + (row + 1 < grid.rows ? row_gap : 0);
  }
  return y;
}

void place_shared_bar(Layout& layout, double bottom) {
  if (layout.shared_horizontal) {
    layout.shared_beside = {layout.margin, bottom, layout.page.width - 2 * layout.margin, 0};
    return;
  }
  // Beside the first row of maps, as high as their bodies; over two rows where there are more.
  const auto& first = layout.panels.front().body;
  double last_bottom = first.bottom(), right = 0;
  for (const auto& placed : layout.panels) {
    right = std::max(right, placed.body.right());
    if (placed.body.y < first.y + 1.5 * first.height + 60) {
      last_bottom = std::max(last_bottom, placed.body.bottom());
    }
  }
  const double height = std::min(last_bottom - first.y, 170.0);
  layout.shared_beside = {first.x, first.y, right - first.x, height};
}

// The tallest body of the panels whose height follows from their width.
double tallest_body(const Figure& figure, const Layout& layout, const Grid& grid) {
  double tallest = 1;
  for (const auto& panel : figure.panels) {
    if (std::holds_alternative<LinesPanel>(panel)) { // a legend is no lower beside a narrower plot
      tallest = std::max(tallest, plot_aspect * grid.body_width);
    } else if (!std::holds_alternative<TokensPanel>(panel) && !std::holds_alternative<BarsPanel>(panel) &&
               !std::holds_alternative<TablePanel>(panel)) {
      tallest = std::max(tallest, body_height(panel, layout.ink, grid.body_width));
    }
  }
  return tallest;
}

std::size_t columns_of(const Figure& figure) {
  return figure.columns > 0 ? static_cast<std::size_t>(figure.columns)
                            : std::max<std::size_t>(1, figure.panels.size());
}

// Which panels share a scale or the names of their rows. `legend`: as a placement's.
void prepare_panels(Layout& layout, const Figure& figure, std::size_t columns, double legend = 0) {
  layout.shared_bar = shared_scale(figure);
  layout.shared_horizontal = any_tokens(figure);
  for (std::size_t index = 0; index < figure.panels.size(); ++index) {
    PlacedPanel placed;
    placed.index = index;
    placed.placement = {layout.shared_bar == nullptr && !repeats_scale(figure, index, columns),
                        !repeats_rows(figure, index, columns), legend};
    layout.panels.push_back(std::move(placed));
  }
}

double shared_bar_width(const Layout& layout) {
  return layout.shared_bar != nullptr && !layout.shared_horizontal
             ? vertical_bar_room(*layout.shared_bar, layout.ink)
             : 0;
}

// The height of a panel's body where `room` is available.
double height_within(const FigurePanel& panel, const Ink& ink, double width, double room) {
  const double natural = body_height(panel, ink, width);
  if (std::holds_alternative<BarsPanel>(panel)) return std::clamp(room, 0.75 * natural, 1.5 * natural);
  if (std::holds_alternative<LinesPanel>(panel) || std::holds_alternative<HeatMapPanel>(panel))
    return std::max(room, 5 * ink.size);
  return natural;
}

struct PageColumns {
  std::size_t count = 1;
  double legend = 0; // as a placement's
};

// The columns that the figure asks for, or fewer where its plots would be too narrow to read; in one column
// their legends are narrower instead.
PageColumns page_columns(const Figure& figure, const FigureStyle& style) {
  constexpr double least_sizes = 10, legend_share = 0.45;
  const std::size_t asked = columns_of(figure), panels = figure.panels.size();
  if (std::ranges::none_of(figure.panels, [](const FigurePanel& panel) {
        return std::holds_alternative<LinesPanel>(panel) || std::holds_alternative<BarsPanel>(panel);
      }))
    return {asked};
  const double inner = style.width_mm / 25.4 * 72 - 2 * Layout{}.margin;
  const auto readable = [&](std::size_t columns) {
    Layout layout;
    layout.ink = page_ink(style);
    prepare_panels(layout, figure, columns);
    const auto height_of = [&](const PlacedPanel& placed, double width) {
      return body_height(figure.panels[placed.index], layout.ink, width);
    };
    const Grid grid = fit_columns(figure, layout, columns, inner - shared_bar_width(layout), height_of);
    return grid.body_width >= least_sizes * layout.ink.size;
  };
  if (readable(asked)) return {asked};
  for (std::size_t rows = (panels + asked - 1) / asked + 1; rows < panels; ++rows) {
    const std::size_t columns = (panels + rows - 1) / rows;
    if (readable(columns)) return {columns};
  }
  return {1, readable(1) ? 0 : legend_share * inner};
}

UsageError too_wide(std::size_t columns, double width_mm) {
  return {"--width-mm",
          columns == 1
              ? fmt::format("a panel does not fit into {:g} mm", width_mm)
              : fmt::format("{} panels do not fit beside each other into {:g} mm", columns, width_mm),
          "choose a larger --width-mm or a smaller --font-points, or draw fewer panels beside each other "
          "(kernels, --columns)"};
}

// `spare`: 0 on the first call, which sets it to the width that the limit of the panels' height leaves empty.
Layout lay_out_at(const Figure& figure, const FigureStyle& style, const PageColumns& page, double page_width,
                  double& spare) {
  Layout layout;
  layout.ink = page_ink(style);
  layout.page.width = page_width;
  const double inner = layout.page.width - 2 * layout.margin;
  layout.title_lines = wrap_text(figure.title, layout.ink.title(), inner);
  layout.subtitle_lines = wrap_text(figure.subtitle, layout.ink.note(), inner);
  const std::size_t columns = page.count;
  prepare_panels(layout, figure, columns, page.legend);
  const auto height_of = [&](const PlacedPanel& placed, double width) {
    return body_height(figure.panels[placed.index], layout.ink, width);
  };
  double y = layout.margin +
             line_height(layout.ink.title()) * static_cast<double>(layout.title_lines.size()) +
             line_height(layout.ink.note()) * static_cast<double>(layout.subtitle_lines.size());
  y += y > layout.margin ? 6 : 0;
  double bottom = y;
  if (!layout.panels.empty()) {
    const Grid grid = fit_columns(figure, layout, columns, inner - shared_bar_width(layout), height_of);
    // A page that is cut to its panels' heights has room for their widths.
    if (!grid.fits && spare <= 0) throw too_wide(columns, style.width_mm);
    const double fitting = std::min(1.0, height_limit(style, columns) / tallest_body(figure, layout, grid));
    spare = spare > 0 ? 0 : (1 - fitting) * grid.body_width * static_cast<double>(columns);
    bottom = place_rows(figure, layout, grid, y, height_of);
  }
  if (layout.shared_bar != nullptr) {
    place_shared_bar(layout, bottom);
    bottom += layout.shared_horizontal ? 2 + horizontal_bar_room(layout.ink) : 0;
  }
  layout.page.height = bottom + layout.margin;
  return layout;
}

} // namespace

Layout lay_out(const Figure& figure, const FigureStyle& style) {
  const double width = style.width_mm / 25.4 * 72;
  const PageColumns columns = page_columns(figure, style);
  double spare = 0;
  Layout layout = lay_out_at(figure, style, columns, width, spare);
  // Where the panels' heights keep them from filling the width, the page is cut to them.
  return spare > 1 ? lay_out_at(figure, style, columns, width - spare, spare) : layout;
}

Layout lay_out_within(const Figure& figure, const Ink& ink, const PageSize& room) {
  Layout layout;
  layout.ink = ink;
  layout.margin = 1;
  layout.page = room;
  const std::size_t columns = columns_of(figure);
  prepare_panels(layout, figure, columns);
  if (layout.panels.empty()) return layout;
  const double inner = room.width - 2 * layout.margin - shared_bar_width(layout);
  const double shared_below =
      layout.shared_bar != nullptr && layout.shared_horizontal ? 2 + horizontal_bar_room(ink) : 0;
  const std::size_t rows = (figure.panels.size() + columns - 1) / columns;
  const double pitch =
      (room.height - 2 * layout.margin - shared_below + row_gap) / static_cast<double>(rows) - row_gap;
  const bool titled = figure.panels.size() > 1;
  const auto height_of = [&](const PlacedPanel& placed, double width) {
    const FigurePanel& panel = figure.panels[placed.index];
    const double below = surround(panel, ink, placed.placement, {width, std::max(1.0, pitch)}).below;
    const auto lines =
        titled ? wrap_text(title_of(panel), ink.panel_title(), width) : std::vector<std::string>{};
    double title = lines.empty() ? 0 : 2;
    for (std::size_t line = 0; line < lines.size(); ++line)
      title += line_height(line == 0 ? ink.panel_title() : ink.note());
    return height_within(panel, ink, width, pitch - below - title);
  };
  const Grid grid = fit_columns(figure, layout, columns, inner, height_of);
  const double bottom = place_rows(figure, layout, grid, layout.margin, height_of, titled);
  if (layout.shared_bar != nullptr) place_shared_bar(layout, bottom);
  layout.page.height = std::max(room.height, bottom + shared_below + layout.margin);
  return layout;
}

std::optional<FigureItem> item_at(const Figure& figure, const Layout& layout, Point point) {
  for (const PlacedPanel& placed : layout.panels) {
    if (const auto item = item_at(figure.panels[placed.index], layout.ink, placed.body, point))
      return FigureItem{placed.index, *item};
  }
  return {};
}

std::optional<Box> box_of(const Figure& figure, const Layout& layout, const FigureItem& item) {
  if (item.panel >= layout.panels.size()) return {};
  return box_of(figure.panels[item.panel], layout.ink, layout.panels[item.panel].body, item.item);
}

void draw_figure(Canvas& canvas, const Figure& figure, const Layout& layout,
                 const std::function<void()>& before_panel) {
  double y = layout.margin;
  y += draw_lines(canvas, layout.title_lines, {layout.margin, y}, layout.ink.title());
  draw_lines(canvas, layout.subtitle_lines, {layout.margin, y}, layout.ink.note());
  for (const auto& placed : layout.panels) {
    if (before_panel) before_panel();
    double line_y = placed.title.y;
    for (std::size_t line = 0; line < placed.title_lines.size(); ++line) {
      const auto style = line == 0 ? layout.ink.panel_title() : layout.ink.note();
      line_y += draw_lines(canvas, {placed.title_lines[line]}, {placed.title.x, line_y}, style);
    }
    draw_panel(canvas, figure.panels[placed.index], layout.ink, placed.placement, placed.body);
  }
  if (layout.shared_bar != nullptr) {
    const auto owner = std::ranges::find(figure.panels, layout.shared_bar, scale_of);
    const Backdrop backdrop = backdrop_of(*owner);
    if (layout.shared_horizontal) {
      draw_horizontal_bar(canvas, *layout.shared_bar, backdrop, layout.ink,
                          {layout.shared_beside.x, layout.shared_beside.y}, layout.shared_beside.width);
    } else {
      draw_vertical_bar(canvas, *layout.shared_bar, backdrop, layout.ink, layout.shared_beside);
    }
  }
}

} // namespace hydrascope
