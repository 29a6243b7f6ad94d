// The times of layers under their kernels over the last runs, whoever asked for those runs. Plain values,
// main thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

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

} // namespace hydrascope::app
