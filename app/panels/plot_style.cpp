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

} // namespace hydrascope::app
