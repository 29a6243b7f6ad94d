#include "app/panels/plot_style.h"

#include <utility>

#include <implot.h>

#include "app/window/theme.h"

namespace hydrascope::app {

PlotStyle::PlotStyle() {
  const std::pair<ImPlotCol, ImVec4> colours[] = {
      {ImPlotCol_FrameBg, {0, 0, 0, 0}},       {ImPlotCol_PlotBg, {0, 0, 0, 0}},
      {ImPlotCol_PlotBorder, theme::line},     {ImPlotCol_LegendBg, theme::surface},
      {ImPlotCol_LegendBorder, theme::line},   {ImPlotCol_LegendText, theme::text},
      {ImPlotCol_InlayText, theme::quiet},     {ImPlotCol_AxisText, theme::quiet},
      {ImPlotCol_AxisGrid, theme::line},       {ImPlotCol_AxisTick, theme::faint},
      {ImPlotCol_AxisBgHovered, theme::raised}};
  for (const auto& [index, colour] : colours) {
    ImPlot::PushStyleColor(index, colour);
    ++colours_;
  }
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(4, 4));
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotMinSize, ImVec2(60, 40));
}

PlotStyle::~PlotStyle() {
  ImPlot::PopStyleVar(2);
  ImPlot::PopStyleColor(colours_);
}

bool NearestPoint::offer(const double x, const double y) {
  const ImVec2 at = ImPlot::PlotToPixels(x, y);
  const float distance = (at.x - mouse_.x) * (at.x - mouse_.x) + (at.y - mouse_.y) * (at.y - mouse_.y);
  if (distance >= best_) return false;
  best_ = distance;
  return true;
}

} // namespace hydrascope::app
