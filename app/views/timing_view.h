// The times of layers over the last runs, and where the time of a run goes, layer by layer and kernel by
// kernel. Plain header.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/figures/figure.h"
#include "engine/measure/flops.h"
#include "engine/measure/quantiles.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// What times may be compared across: the same model, number of tokens, dtype, device and threads.
std::string timing_subject(const RunResult& run);

class TimingRecord {
public:
  static constexpr std::size_t most_runs = 32; // the last ones of each layer and kernel

  // Takes the layers that really ran, on the path that a plain forward pass takes, and the passes that were
  // made for their time alone.
  void add(const RunResult& run);

  // Of this layer under this kernel; no runs if it has not been measured.
  RepeatedTime time(const std::string& subject, int layer, const KernelSpec& kernel) const;

  // Grows with every run that was added.
  std::uint64_t revision() const { return revision_; }

private:
  struct Samples {
    std::deque<double> seconds; // oldest first
    bool first_is_cold = true;  // the very first run packs weights: it counts only as long as it is alone
  };
  using Layers = std::map<std::pair<int, KernelSpec>, Samples>;

  void add(Layers& layers, int layer, const KernelSpec& kernel, double seconds, bool warm);

  std::map<std::string, Layers> subjects_;
  std::deque<std::string> order_; // subjects, the oldest first
  std::uint64_t revision_ = 0;
};

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

// "A n = 11, B n = 12"
std::string runs_of_sides(const TimingView& a, const TimingView& b);

// Bars of the medians with a tick at p95; of the differences A − B of the medians; and all three beside each
// other. A difference is of as many layers as both have.
Figure timing_figure(const TimingView& view);
Figure timing_difference_figure(const TimingView& a, const TimingView& b);
Figure timing_sides_figure(const TimingView& a, const TimingView& b);

// Milliseconds of each layer, in the kernels' colours; cached layers are left out and named in the subtitle.
Figure timing_figure(const RunResult& run);

} // namespace hydrascope::app
