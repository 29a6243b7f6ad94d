// Options that the benchmarks of attention alone share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "engine/measure/scaling.h"

namespace hydrascope::app {

// --heads and --head-width; `setting` must outlive the parse, here and below.
void add_head_options(CLI::App& command, ScalingSetting& setting);

// --device, --threads, --seconds (of each case) and --json.
void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json);

// A comma list's kernels; of an empty one all there are. Throws UsageError.
std::vector<KernelSpec> kernels_or_all(const std::string& list);

// Where it was measured, as "2 threads on processors 0-1; AMD EPYC, 2600 MHz". Throws as device_of.
std::string place_text(const std::string& device);

// What was measured, and how long it took or why it was skipped.
nlohmann::ordered_json entry_of(const ScalingPoint& point, const ScalingSetting& setting);

} // namespace hydrascope::app
