// The layout of a figure's panels on a page.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"
#include "engine/figures/page.h"
#include "engine/figures/panel_drawing.h"

namespace hydrascope {

struct PlacedPanel {
  std::size_t index = 0;
  Box body;
  Point title; // top left corner of the title's lines
  std::vector<std::string> title_lines;
  Placement placement;
};

struct Layout {
  PageSize page;
  double margin = 4;
  Ink ink;
  std::vector<std::string> title_lines, subtitle_lines;
  std::vector<PlacedPanel> panels;
  const Scale* shared_bar = nullptr; // one colour bar for the whole figure: right of `shared_beside`
  bool shared_horizontal = false;    // or below everything, from its lower left corner
  Box shared_beside;
};

// The page is as wide as the style says (narrower where a panel would become too tall for a page) and as high
// as the panels need. Refers to the figure. Throws UsageError if a row's panels are too wide for the page.
Layout lay_out(const Figure& figure, const FigureStyle& style);
// For the window: the panels without the figure's title, as large as possible within `room`. The page is
// higher than `room` where the panels need more. Refers to the figure.
Layout lay_out_within(const Figure& figure, const Ink& ink, const PageSize& room);

struct FigureItem {
  std::size_t panel = 0;
  PanelItem item;
  bool operator==(const FigureItem&) const = default;
};
// The item at a point of the page, and an item's box; nullopt without one.
std::optional<FigureItem> item_at(const Figure& figure, const Layout& layout, Point point);
std::optional<Box> box_of(const Figure& figure, const Layout& layout, const FigureItem& item);

// `before_panel` may throw to stop the drawing.
void draw_figure(Canvas& canvas, const Figure& figure, const Layout& layout,
                 const std::function<void()>& before_panel = {});

} // namespace hydrascope
