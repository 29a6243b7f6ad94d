#include "app/panels/heat_map_view.h"

namespace hydrascope::app {

void HeatMapView::set(HeatMapPanel panel) {
  map_.set(panel.values, panel.scale);
  panel_ = std::move(panel);
}

HeatMapView::Input HeatMapView::draw(const char* id, Graphics& graphics, ImVec2 from, ImVec2 size,
                                     const Marks& marks, float opacity, MapZoom* zoom) {
  if (map_.empty()) return {};
  const MatrixAxes axes{map_.rows(), map_.columns(), &panel_.y_ticks, &panel_.x_ticks};
  return draw_matrix(
      id, graphics, axes, from, size, marks, opacity, zoom,
      [&](ImDrawList* list, ImVec2 at, ImVec2 to) { map_.draw(graphics, list, at, to, opacity); });
}

} // namespace hydrascope::app
