// Measured kernels as they are drawn: time against N, and what they reach beside what the machine allows
// (Williams, Waterman & Patterson 2009). Plain header.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/measure/machine.h"
#include "engine/measure/scaling.h"

namespace hydrascope::app {

// Time against N of the kernels in use, as far as it has been measured.
struct ScalingCurves {
  ScalingSetting setting;           // that all points were measured in
  std::vector<ScalingPoint> points; // in the order measured
  MachineLimits limits;             // measured in the same run; 0: not yet
  bool running = false;
  double progress = 0; // 0…1
  std::string device;  // of the points: "cpu"
};

// The points of one kernel by growing N.
std::vector<ScalingPoint> points_of(const ScalingCurves& curves, const KernelSpec& kernel);

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
