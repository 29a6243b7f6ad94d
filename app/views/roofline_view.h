// What kernels reach beside what the machine allows (Williams, Waterman & Patterson 2009), as it is drawn.
// Plain header.
#pragma once

#include <string>
#include <vector>

#include "app/views/scaling_view.h"
#include "engine/figures/figure.h"
#include "engine/measure/machine.h"

namespace hydrascope::app {

struct RooflineLine {
  std::string kernel;                  // with its parameters
  std::vector<double> intensity, rate; // operations per byte of q, k, v and output; GFLOP/s
  std::vector<std::string> labels;     // N
};

// Of lines that have points, in their order.
std::vector<RooflineLine> roofline_lines(const std::vector<ScalingLine>& lines);

// The roof, dashed, and below it a point for each kernel and N; nothing but the points without limits.
LinesPanel roofline_panel(const MachineLimits& limits, const std::vector<RooflineLine>& lines);

Figure roofline_figure(const ScalingCurves& curves, const std::vector<RooflineLine>& lines);

} // namespace hydrascope::app
