// A matrix with its axes, its title above it and its numbers under the pointer.
#pragma once

#include <optional>
#include <string>

#include <imgui.h>

#include "app/window/graphics.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct Cell {
  int row = 0, column = 0;
};

class HeatMapView {
public:
  void set(HeatMapPanel panel);
  void clear() {
    panel_ = {};
    map_.clear();
  }
  bool empty() const { return map_.empty(); }
  const HeatMapPanel& panel() const { return panel_; }
  float value(int row, int column) const { return map_.value(row, column); }

  struct Marks {
    std::optional<int> row; // the query
    std::optional<int> hovered_row, hovered_column;
  };
  struct Input {
    std::optional<Cell> hovered, clicked;
    ImVec2 from, to; // where the cells lie
  };
  // Draws into the rectangle: tokens beside the rows and under the columns where they fit, else nothing.
  Input draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size, const Marks& marks, float opacity);

private:
  HeatMapPanel panel_;
  MapTexture map_;
};

} // namespace hydrascope::app
