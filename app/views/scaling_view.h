// Time against N, kernel by kernel, as it is drawn. Plain header.
#pragma once

#include <string>
#include <vector>

#include "app/state/scaling_curves.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct ScalingLine {
  KernelSpec kernel;
  std::vector<ScalingPoint> points;        // those that have a time, by growing N
  std::vector<double> tokens, median, p95; // of `points`; times in ms
  std::string skipped; // "from N = 8192: a run would take about 9 s"; empty if nothing was
};

// Of the kernels for which there are points, in their order.
std::vector<ScalingLine> scaling_lines(const ScalingCurves& curves, const std::vector<KernelSpec>& kernels);

// "vit-small: H = 6, d = 64, cpu float32, 1 thread, batch 1, attention alone"
std::string scaling_caption(const ScalingSetting& setting, const std::string& device);

Figure scaling_figure(const ScalingCurves& curves, const std::vector<ScalingLine>& lines);

} // namespace hydrascope::app
