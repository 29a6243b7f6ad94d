// Where the time of a run goes, layer by layer and kernel by kernel, over the last runs. Plain header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/views/timing_record.h"
#include "engine/figures/figure.h"
#include "engine/measure/flops.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct TimingRow {
  int layer = 0;
  KernelSpec kernel;
  std::string path;
  RepeatedTime time; // no runs: not measured on this subject yet
};

// All layers of one kernel together.
struct KernelTiming {
  KernelSpec kernel;
  int layers = 0, measured = 0;
  double seconds = 0;   // sum of the medians of the layers that were measured
  double products = 0;  // multiply-accumulates of their blocks' matrix products; 0 where unknown
  double attention = 0; // of these the attention operation's
};

struct TimingView {
  std::string title;   // model and schedule
  std::string setting; // device, dtype, threads, paths, peak memory, N
  std::string runs;    // "n = 11", "n = 1 to 12"
  std::vector<TimingRow> rows;
  std::vector<KernelTiming> kernels; // in the order of their first layer
};

// `flops` of the run's model, input and schedule, by the `blocks` convention of engine/measure/flops.h.
TimingView timing_view(const RunResult& run, const TimingRecord& times, const std::optional<Flops>& flops);

// The run's flops by formula; nullopt for a model or kernel that the formulas do not cover.
std::optional<Flops> flops_of_run(const RunResult& run);

// Bars of the medians with a tick at p95; of the differences A − B of the medians; and all three beside each
// other. A difference is of as many layers as both have.
Figure timing_figure(const TimingView& view);
Figure timing_difference_figure(const TimingView& a, const TimingView& b);
Figure timing_sides_figure(const TimingView& a, const TimingView& b);

} // namespace hydrascope::app
