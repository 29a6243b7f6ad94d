#include "app/panels/lines_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <implot.h>

#include "app/window/theme.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

ImVec4 line_colour(std::size_t line, float opacity) {
  const std::array<ImVec4, 3> colours = {theme::accent, theme::amber, theme::quiet};
  ImVec4 colour = colours[line % colours.size()];
  colour.w *= opacity;
  return colour;
}

// What all lines say at the x nearest to the pointer.
void draw_values(const LinesPanel& panel) {
  const double pointed = ImPlot::GetPlotMousePos().x;
  double nearest = std::numeric_limits<double>::quiet_NaN();
  for (const LinesPanel::Line& line : panel.lines)
    for (const double x : line.x)
      if (std::isnan(nearest) || std::abs(x - pointed) < std::abs(nearest - pointed)) nearest = x;
  std::string text = fmt::format("{} {}", panel.x_label, number_text(nearest, 3));
  for (const LinesPanel::Line& line : panel.lines) {
    const auto at = std::ranges::find(line.x, nearest);
    if (at == line.x.end()) continue;
    text += fmt::format("\n{}: {}", line.name,
                        number_text(line.y.at(static_cast<std::size_t>(at - line.x.begin())), 4));
  }
  const double x = nearest;
  ImPlot::PlotInfLines("##nearest", &x, 1, {ImPlotProp_LineColor, ImVec4(theme::line)});
  ImGui::SetTooltip("%s", text.c_str());
}

} // namespace

PlotRange range_of_lines(const LinesPanel& panel) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const LinesPanel::Line& line : panel.lines)
    for (const double y : line.y)
      if (std::isfinite(y)) {
        low = std::min(low, y);
        high = std::max(high, y);
      }
  if (low > high) return {0, 1};
  const double room = high > low ? 0.06 * (high - low) : 0.5;
  return {low - room, high + room};
}

void draw_line_names(const LinesPanel& panel, std::span<const std::string> after, float width) {
  const float end = ImGui::GetCursorPosX() + width;
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 12);
    ellipsis_text(panel.lines[i].name + " " + after[i], end - ImGui::GetCursorPosX(), line_colour(i, 1));
  }
}

void draw_lines(const char* id, Graphics& graphics, const LinesPanel& panel, ImVec2 size, PlotRange range,
                float opacity) {
  if (!(range.low < range.high)) range = range_of_lines(panel);
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const LinesPanel::Line& line : panel.lines)
    for (const double x : line.x) {
      first = std::min(first, x);
      last = std::max(last, x);
    }
  if (!(first < last)) return;
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImPlot::PushStyleColor(ImPlotCol_FrameBg, ImVec4(0, 0, 0, 0));
  ImPlot::PushStyleColor(ImPlotCol_PlotBg, ImVec4(0, 0, 0, 0));
  ImPlot::PushStyleColor(ImPlotCol_PlotBorder, ImVec4(theme::line));
  ImPlot::PushStyleColor(ImPlotCol_AxisText, ImVec4(theme::quiet));
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(4, 4));
  const int flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMenus |
                    ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
  if (ImPlot::BeginPlot(id, size, flags)) {
    const int axis = ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoHighlight;
    ImPlot::SetupAxes(panel.x_label.c_str(), panel.y_label.c_str(), axis, axis);
    ImPlot::SetupAxesLimits(first, last, range.low, range.high, ImPlotCond_Always);
    for (std::size_t i = 0; i < panel.lines.size(); ++i) {
      const LinesPanel::Line& line = panel.lines[i];
      const ImVec4 colour = line_colour(i, opacity);
      ImPlot::PlotLine(
          line.name.c_str(), line.x.data(), line.y.data(),
          static_cast<int>(std::min(line.x.size(), line.y.size())),
          {ImPlotProp_LineColor, colour, ImPlotProp_LineWeight, 1.8f, ImPlotProp_Marker, ImPlotMarker_Circle,
           ImPlotProp_MarkerSize, 2.5f, ImPlotProp_MarkerFillColor, colour});
    }
    if (ImPlot::IsPlotHovered()) draw_values(panel);
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar();
  ImPlot::PopStyleColor(4);
  ImGui::PopFont();
}

} // namespace hydrascope::app
