// Options that the benchmarks of attention alone share.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/measure/scaling.h"

namespace hydrascope::app {

// --heads and --head-width; `setting` must outlive the parse, here and below.
void add_head_options(CLI::App& command, ScalingSetting& setting);

// --threads, --seconds (of each case) and --json.
void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json);

} // namespace hydrascope::app
