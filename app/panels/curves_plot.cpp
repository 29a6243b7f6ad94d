#include "app/panels/curves_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <implot.h>

#include "app/panels/plot_style.h"
#include "app/window/theme.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

// A little room around what is drawn, and some for a single value.
Range with_room(Range range, bool logarithmic, double share = 0.06) {
  if (range.empty()) return {.low = 0.1, .high = 1};
  if (logarithmic) {
    const double factor = std::max(1.15, std::pow(range.high / range.low, 0.05));
    return {.low = range.low / factor, .high = range.high * factor};
  }
  const double room = range.high > range.low ? share * (range.high - range.low) : 0.5;
  return {.low = range.low - room, .high = range.high + room};
}

Colour on_surface(const Colour& colour) {
  const ImVec4 ground = theme::surface;
  constexpr double graphical_contrast = 2.2; // of lines beside each other, whose order must stay visible
  return with_contrast(colour, {ground.x, ground.y, ground.z, 1}, graphical_contrast);
}

// Powers of ten alone would leave less than a decade without a number.
void set_up_ticks(const Range& range) {
  std::vector<double> values;
  std::vector<std::string> texts;
  for (const Tick& tick : ticks(range.low, range.high, true)) {
    values.push_back(range.low * std::pow(range.high / range.low, tick.position));
    texts.push_back(tick.text);
  }
  std::vector<const char*> labels;
  for (const std::string& text : texts) labels.push_back(text.c_str());
  if (!values.empty())
    ImPlot::SetupAxisTicks(ImAxis_Y1, values.data(), static_cast<int>(values.size()), labels.data());
}

void set_up_axes(const LinesPanel& panel) {
  Range x, y;
  for (const LinesPanel::Line& line : panel.lines) {
    for (const double value : line.x) x.add(value);
    for (const double value : line.y) y.add(value);
  }
  x = with_room(x, false, 0.015);
  y = with_room(y, panel.log_y);
  constexpr ImPlotAxisFlags axis =
      ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoHighlight;
  ImPlot::SetupAxes(panel.x_label.c_str(), panel.y_label.c_str(), axis, axis);
  if (panel.log_y) {
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    set_up_ticks(y);
  }
  ImPlot::SetupAxesLimits(x.low, x.high, y.low, y.high, ImPlotCond_Always);
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_NoButtons);
}

void plot_line(const LinesPanel::Line& line, bool in_legend) {
  const Colour colour = on_surface(line.colour);
  ImPlotSpec spec;
  spec.LineColor = {colour.red, colour.green, colour.blue, 1};
  spec.LineWeight = 1.5f;
  if (line.style == LinesPanel::Style::marked) {
    spec.Marker = ImPlotMarker_Diamond;
    spec.MarkerSize = 4;
    spec.MarkerFillColor = spec.LineColor;
  }
  if (!in_legend) spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotLine(line.name.c_str(), line.x.data(), line.y.data(),
                   static_cast<int>(std::min(line.x.size(), line.y.size())), spec);
}

void nearest_tooltip(const LinesPanel& panel) {
  const ImVec2 mouse = ImGui::GetMousePos();
  const LinesPanel::Line* nearest = nullptr;
  std::size_t place = 0;
  float best = 16 * 16; // points further away are not meant
  for (const LinesPanel::Line& line : panel.lines) {
    for (std::size_t i = 0; i < std::min(line.x.size(), line.y.size()); ++i) {
      const ImVec2 at = ImPlot::PlotToPixels(line.x[i], line.y[i]);
      const float distance = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
      if (distance >= best) continue;
      best = distance;
      nearest = &line;
      place = i;
    }
  }
  if (nearest == nullptr) return;
  text_tooltip(fmt::format("{}\nstep {:.0f}: {}", nearest->name, nearest->x[place],
                           number_text(nearest->y[place], 4)));
}

} // namespace

void draw_curves(const char* id, const Graphics& graphics, const LinesPanel& panel, ImVec2 size) {
  const PlotStyle style;
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  constexpr ImPlotFlags flags =
      ImPlotFlags_NoTitle | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
  if (ImPlot::BeginPlot(id, size, flags)) {
    set_up_axes(panel);
    constexpr std::size_t most = 4; // entries of a legend
    const std::size_t count = panel.lines.size();
    for (std::size_t i = 0; i < count; ++i) {
      const bool stands_for_others = i == 0 || i + 2 >= count; // the last one is of another kind
      plot_line(panel.lines[i], count <= most || stands_for_others);
    }
    if (ImPlot::IsPlotHovered()) nearest_tooltip(panel);
    ImPlot::EndPlot();
  }
  ImGui::PopFont();
}

} // namespace hydrascope::app
