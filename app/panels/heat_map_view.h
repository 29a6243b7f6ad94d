// A matrix with its axes and its numbers under the pointer.
#pragma once

#include <string>

#include <imgui.h>

#include "app/panels/map_zoom.h"
#include "app/ui/graphics.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

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

  using Marks = MatrixMarks;
  using Input = MatrixInput;
  // As draw_matrix.
  Input draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size, const Marks& marks, float opacity,
             MapZoom* zoom = nullptr);

private:
  HeatMapPanel panel_;
  MapTexture map_;
};

} // namespace hydrascope::app
