// The look of plots, for the plots begun during its life.
#pragma once

#include <imgui.h>

namespace hydrascope::app {

class PlotStyle {
public:
  PlotStyle();
  ~PlotStyle();
  PlotStyle(const PlotStyle&) = delete;
  PlotStyle& operator=(const PlotStyle&) = delete;

private:
  int colours_ = 0;
};

// The point of the plot that is being drawn which lies nearest to the pointer, of those offered to it.
class NearestPoint {
public:
  NearestPoint() : mouse_(ImGui::GetMousePos()) {}
  // Whether (x, y), in the plot's coordinates, is nearer than all before; points far away are not meant.
  bool offer(double x, double y);

private:
  ImVec2 mouse_;
  float best_ = 14 * 14; // pixels, squared
};

} // namespace hydrascope::app
