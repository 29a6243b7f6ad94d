// What bench kernels, scaling and heads share: options, lists of kernels and lengths, what they print of a
// case.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/error.h"
#include "engine/measure/scaling.h"

namespace CLI {
class App;
} // namespace CLI

namespace hydrascope::app {

inline constexpr int most_head_width = 4096; // a d × d map then has 16 million numbers a head

// --heads and --head-width.
void add_head_options(CLI::App& command, ScalingSetting& setting);

// --device, --threads, --seconds (of each case) and --json.
void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json);

// Each value once, where it comes first: what is named twice is measured once.
template <typename Value>
std::vector<Value> distinct(const std::vector<Value>& values) {
  std::vector<Value> kept;
  for (const Value& value : values)
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  return kept;
}

// Each value once, ascending: the time of a short one predicts that of a long one.
std::vector<std::int64_t> ordered_lengths(const std::vector<std::int64_t>& tokens);

// The kernels of a comma list, each once, all of the registry for an empty one. Throws UsageError.
std::vector<KernelSpec> kernels_or_all(const std::string& list);

// The case, and its time or why it was skipped.
nlohmann::ordered_json scaling_entry(const ScalingPoint& point, const ScalingSetting& setting);

ScalingLimits limits_of(double point_seconds);

// Calls `measure`, which adds to `points`, then `print`; after an error `print` shows what was measured
// before.
template <typename Points, typename Measure, typename Print>
void measure_and_print(const Points& points, const Measure& measure, const Print& print) {
  try {
    measure();
  } catch (const Error&) { // of the device, or of its memory
    if (!points.empty()) print();
    throw;
  }
  print();
}

} // namespace hydrascope::app
