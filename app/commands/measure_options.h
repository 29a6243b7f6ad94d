// What the commands share that measure kernels teacher-forced: kl, kernels --measure.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/command.h"
#include "engine/measure/teacher_forced.h"

namespace hydrascope::app {

struct DataOptions {
  std::vector<std::string> data;
  int column = 0;
  bool header = false;
  int limit = 0;
};
// --data, --column, --header, --limit; `options` must outlive the parse.
void add_data_options(CLI::App& command, DataOptions& options);

// A request for the model and the data; kernels and lengths are the command's own. Without --data the
// sentences that come with the program, or for a vision model its example pictures. Throws Error, UsageError
// (a schedule: the model runs with softmax in every layer).
TeacherForcedRequest measure_request(const CommonOptions& common, const DataOptions& data);

// Measures with a progress bar; notes go to standard error.
TeacherForcedOutcome measure_with_progress(const TeacherForcedRequest& request, const std::string& label);

// A number with three decimals, "—" for one that is not defined.
std::string decimal(double value);
// A number, or null for one that is not defined.
nlohmann::ordered_json number_or_null(double value);

} // namespace hydrascope::app
