// Times of the layers over the last runs, summed up by layer and by kernel. Plain header.
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

// A path as people read it, or several with commas between: "reference" for the composed one, "fused", or its
// own name.
std::string path_text(const std::string& path);
// "CPU · float32", "CUDA:0 · bfloat16"; the device as --device or a result names it.
std::string execution_text(const std::string& device, const std::string& dtype);
// "CPU · float32 · reference": with `path`, which may be empty.
std::string execution_text(const RunResult& run, const std::string& path);
// The most memory during the run: that the process held, "312 MB", or of a GPU, "1.2 GB of 85.0 GB".
std::string memory_text(const RunResult& run);
// "1 run", "12 runs"
std::string runs_text(int runs);

// Times are comparable between runs with the same subject: model, number of tokens, dtype, device and
// threads. With muted heads or masked tokens other paths run.
std::string timing_subject(const RunResult& run);
// The subject of the same run with nothing muted or masked.
std::string plain_timing_subject(const RunResult& run);

class TimingRecord {
public:
  static constexpr std::size_t most_runs = 32; // kept for each layer and kernel

  // Adds the layers that were computed without gradients, and the passes of LayerTimesKey.
  void add(const RunResult& run);

  // The time of a layer with this kernel; zero runs if it has not been measured.
  RepeatedTime time(const std::string& subject, int layer, const KernelSpec& kernel) const;
  // Whether that is the time of the first run alone, which includes packing the weights and warming up.
  bool is_cold(const std::string& subject, int layer, const KernelSpec& kernel) const;

  // Grows with every added run.
  std::uint64_t revision() const { return revision_; }

private:
  struct Samples {
    std::deque<double> seconds; // oldest first
    bool first_is_cold = true;  // the first run also packs weights: it counts only until there is another
  };
  using Layers = std::map<std::pair<int, KernelSpec>, Samples>;

  const Samples* find(const std::string& subject, int layer, const KernelSpec& kernel) const;
  void add(Layers& layers, int layer, const KernelSpec& kernel, double seconds, bool warm);

  std::map<std::string, Layers> subjects_;
  std::deque<std::string> order_; // subjects, the oldest first
  std::uint64_t revision_ = 0;
};

struct TimingRow {
  int layer = 0;
  KernelSpec kernel;
  std::string path;
  RepeatedTime time;    // zero runs: not measured yet
  bool earlier = false; // measured before heads were muted or tokens masked
  bool cold = false;    // of the first run alone, see TimingRecord::is_cold()
};

// Sums over the layers of one kernel.
struct KernelTiming {
  KernelSpec kernel;
  int layers = 0, measured = 0;
  double seconds = 0;   // sum of the medians of the measured layers
  double products = 0;  // multiply-accumulates of their blocks' matrix products; 0 if unknown
  double attention = 0; // of these in attention itself
};

struct TimingView {
  std::string title;   // model and schedule
  std::string setting; // device, dtype, threads, paths, peak memory, N
  std::string runs;    // "11 runs", "1–12 runs"
  std::vector<TimingRow> rows;
  std::vector<KernelTiming> kernels; // in the order of their first layer
};

// `flops` of the run's model, input and schedule, by the `blocks` convention of engine/measure/flops.h.
TimingView timing_view(const RunResult& run, const TimingRecord& times, const std::optional<Flops>& flops);

// The run's flops by formula; nullopt for a model or kernel that the formulas do not cover.
std::optional<Flops> flops_of_run(const RunResult& run);

// The layers without a time, as "layers 0–9, 11"; empty if there are none.
std::string untimed_layers(const TimingView& view);
// In the same form, those timed in their first run alone.
std::string cold_layers(const TimingView& view);

// "A 11 runs, B 12 runs"
std::string runs_of_sides(const TimingView& a, const TimingView& b);

// Bars of the medians with a tick at p95; of the differences A − B of the medians; and A, B and A − B side by
// side. A difference has the layers that both have.
Figure timing_figure(const TimingView& view);
Figure timing_difference_figure(const TimingView& a, const TimingView& b);
Figure timing_sides_figure(const TimingView& a, const TimingView& b);

} // namespace hydrascope::app
