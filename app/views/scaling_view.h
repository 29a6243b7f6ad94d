// Time and memory of the kernels against N, and their roofline (Williams, Waterman & Patterson 2009). Plain
// header.
#pragma once

#include <string>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/measure/machine.h"
#include "engine/measure/scaling.h"

namespace hydrascope::app {

// The measurements so far.
struct ScalingCurves {
  ScalingSetting setting;           // of all points
  std::vector<ScalingPoint> points; // in the order measured
  MachineLimits limits;             // measured in the same run; 0: not yet
  bool running = false;
  double progress = 0; // 0…1
};

// The points of one kernel, N ascending.
std::vector<ScalingPoint> points_of(const ScalingCurves& curves, const KernelSpec& kernel);

struct ScalingLine {
  KernelSpec kernel;
  std::vector<ScalingPoint> points; // with a time, N ascending
  // Of `points`; times in ms, memory beyond q, k and v.
  std::vector<double> tokens, median, p95, megabytes;
  std::string skipped; // "from N = 8192: a run would take about 9 s"; empty if none was
};

// One line per kernel with points, in the order of `kernels`.
std::vector<ScalingLine> scaling_lines(const ScalingCurves& curves, const std::vector<KernelSpec>& kernels);

// "H = 6, d = 64, batch 1, attention alone, CPU · float32, 1 thread"
std::string scaling_caption(const ScalingSetting& setting);

// Time and, as a second panel, memory (Hedgehog paper, Fig. 6).
Figure scaling_figure(const ScalingCurves& curves, const std::vector<ScalingLine>& lines);

struct RooflineLine {
  std::string kernel;                  // with its parameters
  std::vector<double> intensity, rate; // operations per byte of q, k, v and output; GFLOP/s
  std::vector<std::string> labels;     // N
};

// One line per kernel with times, in the order of `lines`.
std::vector<RooflineLine> roofline_lines(const std::vector<ScalingLine>& lines);

// The dashed roof, if the limits are known, and a point per kernel and N.
LinesPanel roofline_panel(const MachineLimits& limits, const std::vector<RooflineLine>& lines);

Figure roofline_figure(const ScalingCurves& curves, const std::vector<RooflineLine>& lines);

} // namespace hydrascope::app
