#include "app/views/roofline_view.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace hydrascope::app {
namespace {

// Rising with the bandwidth to its ceiling.
LinesPanel::Line roof(const MachineLimits& limits, const double low, const double high) {
  LinesPanel::Line line;
  line.name = fmt::format("{:.3g} GB/s, {:.3g} GFLOP/s", limits.bandwidth / 1e9, limits.matrix_rate / 1e9);
  line.style = LinesPanel::Style::dashed;
  line.colour = {0.3f, 0.3f, 0.32f, 1};
  for (const double x : {low, std::clamp(limits.matrix_rate / limits.bandwidth, low, high), high}) {
    line.x.push_back(x);
    line.y.push_back(std::min(limits.matrix_rate, limits.bandwidth * x) / 1e9);
  }
  return line;
}

} // namespace

std::vector<RooflineLine> roofline_lines(const std::vector<ScalingLine>& lines) {
  std::vector<RooflineLine> result;
  for (const ScalingLine& line : lines) {
    RooflineLine own{.kernel = line.kernel.text(), .intensity = {}, .rate = {}, .labels = {}};
    for (const ScalingPoint& point : line.points) {
      if (!(point.products > 0) || !(point.bytes > 0) || !(point.time.median > 0)) continue;
      own.intensity.push_back(2 * point.products / point.bytes);
      own.rate.push_back(2 * point.products / point.time.median / 1e9);
      own.labels.push_back(std::to_string(point.tokens));
    }
    if (!own.rate.empty()) result.push_back(std::move(own));
  }
  return result;
}

LinesPanel roofline_panel(const MachineLimits& limits, const std::vector<RooflineLine>& lines) {
  LinesPanel panel;
  panel.x_label = "flops per byte of q, k, v and output";
  panel.y_label = "GFLOP/s";
  panel.log_x = panel.log_y = true;
  if (limits.bandwidth > 0 && limits.matrix_rate > 0) {
    const double ridge = limits.matrix_rate / limits.bandwidth;
    double low = ridge, high = ridge;
    for (const RooflineLine& line : lines) {
      low = std::min(low, std::ranges::min(line.intensity));
      high = std::max(high, std::ranges::max(line.intensity));
    }
    panel.lines.push_back(roof(limits, low / 2, high * 2));
  }
  for (const RooflineLine& line : lines)
    panel.lines.push_back({.name = line.kernel,
                           .x = line.intensity,
                           .y = line.rate,
                           .colour = kernel_colour(line.kernel),
                           .style = LinesPanel::Style::points,
                           .labels = line.labels});
  return panel;
}

Figure roofline_figure(const ScalingCurves& curves, const std::vector<RooflineLine>& lines) {
  Figure figure;
  figure.title = "Roofline";
  figure.subtitle = scaling_caption(curves.setting, curves.device) +
                    "; dashed: bandwidth and matrix rate measured in the same run; beside each point N";
  figure.panels.emplace_back(roofline_panel(curves.limits, lines));
  return figure;
}

} // namespace hydrascope::app
