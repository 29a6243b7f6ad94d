#include "app/views/scaling_view.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "app/views/timing_view.h"
#include "engine/figures/scale.h"

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
    ScalingLine line{.kernel = kernel,
                     .points = {},
                     .tokens = {},
                     .median = {},
                     .p95 = {},
                     .megabytes = {},
                     .skipped = {}};
    for (ScalingPoint& point : points_of(curves, kernel)) {
      if (!point.skipped.empty()) {
        if (line.skipped.empty()) line.skipped = fmt::format("from N = {}: {}", point.tokens, point.skipped);
        continue;
      }
      line.tokens.push_back(static_cast<double>(point.tokens));
      line.median.push_back(point.time.median * 1e3);
      line.p95.push_back(point.time.p95 * 1e3);
      line.megabytes.push_back(static_cast<double>(point.peak_bytes) / 1e6);
      line.points.push_back(std::move(point));
    }
    if (!line.points.empty() || !line.skipped.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string scaling_caption(const ScalingSetting& setting) {
  std::string text = fmt::format("H = {}, d = {}, batch 1, attention alone, {}", setting.heads,
                                 setting.head_width, execution_text(setting.device, setting.dtype));
  if (setting.threads > 0)
    text += fmt::format(", {} {}", setting.threads, setting.threads == 1 ? "thread" : "threads");
  return text;
}

Figure scaling_figure(const ScalingCurves& curves, const std::vector<ScalingLine>& lines) {
  Figure figure;
  figure.title = "Time and memory of attention against the number of tokens";
  figure.subtitle = scaling_caption(curves.setting);
  LinesPanel time, memory;
  time.x_label = memory.x_label = "number of tokens N";
  time.y_label = "median time (ms), whisker: p95";
  memory.y_label = "memory beyond q, k and v (MB)";
  time.log_x = time.log_y = memory.log_x = memory.log_y = true;
  std::vector<std::string> names;
  for (const ScalingLine& line : lines) {
    const bool again = std::ranges::count(names, line.kernel.name) > 0; // has the same colour
    names.push_back(line.kernel.name);
    const LinesPanel::Style style = again ? LinesPanel::Style::dashed : LinesPanel::Style::line;
    time.lines.push_back({.name = line.kernel.label(),
                          .x = line.tokens,
                          .y = line.median,
                          .colour = kernel_colour(line.kernel.name),
                          .upper = line.p95,
                          .upper_name = "p95",
                          .style = style});
    memory.lines.push_back({.name = line.kernel.label(),
                            .x = line.tokens,
                            .y = line.megabytes,
                            .colour = kernel_colour(line.kernel.name),
                            .style = style});
    if (!line.skipped.empty())
      figure.subtitle += fmt::format("; {} left out {}", line.kernel.label(), line.skipped);
  }
  figure.panels.emplace_back(std::move(time));
  figure.panels.emplace_back(std::move(memory));
  return figure;
}

namespace {

// Rises with the bandwidth up to the matrix rate.
LinesPanel::Line roof(const MachineLimits& limits, const double low, const double high) {
  LinesPanel::Line line;
  line.name = fmt::format("{} GB/s, {} GFLOP/s", number_text(limits.bandwidth / 1e9),
                          number_text(limits.matrix_rate / 1e9));
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
    RooflineLine own{.kernel = line.kernel.label(), .intensity = {}, .rate = {}, .labels = {}};
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
  figure.subtitle = scaling_caption(curves.setting) +
                    "; dashed: bandwidth and matrix rate measured in the same run; beside each point N";
  figure.panels.emplace_back(roofline_panel(curves.limits, lines));
  return figure;
}

} // namespace hydrascope::app
