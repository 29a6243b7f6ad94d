// A figure in the window: as it would be exported, as large as its room, with what lies under the pointer.
#pragma once

#include <optional>
#include <vector>

#include <imgui.h>

#include "app/ui/imgui_canvas.h"
#include "engine/figures/canvas.h"
#include "engine/figures/layout.h"

namespace hydrascope::app {

class DrawnFigure {
public:
  DrawnFigure() = default;
  DrawnFigure(const DrawnFigure& other) : figure_(other.figure_), zooms_(other.zooms_) {}
  DrawnFigure& operator=(const DrawnFigure& other);
  DrawnFigure(DrawnFigure&&) = default;
  DrawnFigure& operator=(DrawnFigure&&) = default;
  ~DrawnFigure() = default;

  void set(Figure figure);
  void clear() { set({}); }
  bool empty() const { return figure_.panels.empty(); }
  // With the ranges that plots were zoomed to.
  const Figure& figure() const { return figure_; }

  // Panels per row; 0: all beside each other.
  void arrange(int columns);
  // Plots are zoomed with the wheel, panned by dragging, and a double click shows all of them again.
  void let_zoom() { zooms_ = true; }

  struct Input {
    std::optional<FigureItem> item; // under the pointer
    std::optional<Point> point;     // of the page, where the pointer is
    bool clicked = false, double_clicked = false;
  };
  // At the cursor, which goes on below it.
  Input draw(const char* id, const Graphics& graphics, ImVec2 size, float opacity = 1);

  // Where something of the figure was drawn in this frame; nullopt: nowhere.
  struct Place {
    ImVec2 from, to;
  };
  std::optional<Place> place_of(const FigureItem& item) const;
  Place body_of(std::size_t panel) const;
  ImVec2 on_screen(Point point) const;
  const Layout& layout() const { return layout_; }

private:
  // The range that a plot shows, where it is not all of the data.
  struct Range {
    std::optional<Axis> x, y;
  };
  void lay_out(ImVec2 size);
  void zoom(Point pointer);
  void apply_ranges();

  Figure figure_;
  bool zooms_ = false;
  std::vector<Range> ranges_; // by panel
  Layout layout_;             // of `size_` in the theme `mode_`
  Recording recording_;
  CanvasCache cache_;
  bool laid_out_ = false;
  ImVec2 size_, origin_;
  theme::Mode mode_ = theme::Mode::dark;
};

} // namespace hydrascope::app
