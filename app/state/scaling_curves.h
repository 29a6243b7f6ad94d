// Time against N of the kernels in use, as far as it has been measured. Plain values.
#pragma once

#include <vector>

#include "app/state/document.h"
#include "engine/measure/machine_limits.h"
#include "engine/measure/scaling.h"

namespace hydrascope::app {

struct ScalingCurves {
  ScalingSetting setting;           // that all points were measured in
  std::vector<ScalingPoint> points; // in the order measured
  MachineLimits limits;             // measured in the same run; 0: not yet
  bool running = false;
  double progress = 0; // 0…1
  std::string device;  // of the points: "cpu"
};

// The kernels of both schedules, each once, A's first.
std::vector<KernelSpec> kernels_in_use(const Document& document);
// What they would be measured in; throws nothing, needs a model.
ScalingSetting scaling_setting(const Document& document);

// The points of one kernel by growing N.
std::vector<ScalingPoint> points_of(const ScalingCurves& curves, const KernelSpec& kernel);

} // namespace hydrascope::app
