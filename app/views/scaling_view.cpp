#include "app/views/scaling_view.h"

#include <algorithm>

#include <fmt/format.h>

namespace hydrascope::app {

std::vector<ScalingPoint> points_of(const ScalingCurves& curves, const KernelSpec& kernel) {
  std::vector<ScalingPoint> points;
  for (const ScalingPoint& point : curves.points)
    if (point.kernel == kernel) points.push_back(point);
  std::ranges::sort(points, {}, &ScalingPoint::tokens);
  return points;
}

std::vector<ScalingLine> scaling_lines(const ScalingCurves& curves, const std::vector<KernelSpec>& kernels) {
  std::vector<ScalingLine> lines;
  for (const KernelSpec& kernel : kernels) {
    ScalingLine line{.kernel = kernel, .points = {}, .tokens = {}, .median = {}, .p95 = {}, .skipped = {}};
    for (ScalingPoint& point : points_of(curves, kernel)) {
      if (!point.skipped.empty()) {
        if (line.skipped.empty()) line.skipped = fmt::format("from N = {}: {}", point.tokens, point.skipped);
        continue;
      }
      line.tokens.push_back(static_cast<double>(point.tokens));
      line.median.push_back(point.time.median * 1e3);
      line.p95.push_back(point.time.p95 * 1e3);
      line.points.push_back(std::move(point));
    }
    if (!line.points.empty() || !line.skipped.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string scaling_caption(const ScalingSetting& setting, const std::string& device) {
  std::string text = fmt::format("H = {}, d = {}, batch 1, attention alone, {} {}", setting.heads,
                                 setting.head_width, device.empty() ? "cpu" : device, setting.dtype);
  if (setting.threads > 0)
    text += fmt::format(", {} {}", setting.threads, setting.threads == 1 ? "thread" : "threads");
  return text;
}

Figure scaling_figure(const ScalingCurves& curves, const std::vector<ScalingLine>& lines) {
  Figure figure;
  figure.title = "Time of attention against the number of tokens";
  figure.subtitle = scaling_caption(curves.setting, curves.device);
  LinesPanel panel;
  panel.x_label = "number of tokens N";
  panel.y_label = "median time (ms), whisker: p95";
  panel.log_x = panel.log_y = true;
  std::vector<std::string> names;
  for (const ScalingLine& line : lines) {
    const bool again = std::ranges::count(names, line.kernel.name) > 0; // in the same colour
    names.push_back(line.kernel.name);
    panel.lines.push_back({.name = line.kernel.text(),
                           .x = line.tokens,
                           .y = line.median,
                           .colour = kernel_colour(line.kernel.name),
                           .upper = line.p95,
                           .upper_name = "p95",
                           .style = again ? LinesPanel::Style::dashed : LinesPanel::Style::line});
    if (!line.skipped.empty())
      figure.subtitle += fmt::format("; {} left out {}", line.kernel.text(), line.skipped);
  }
  figure.panels.emplace_back(std::move(panel));
  return figure;
}

} // namespace hydrascope::app
