// Teacher-forced measuring, as `kl`, `kernels --measure` and `figure` with --data do it. Plain header.
#pragma once

#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "engine/measure/teacher_forced.h"

namespace hydrascope::app {

// The texts or pictures to measure on.
struct DataOptions {
  std::vector<std::string> data; // files or folders
  int column = 0;                // of tab-separated lines, from 1; 0: whole lines
  int pair_column = 0;           // of the second texts of pairs; 0: none
  bool header = false;           // skip the first line of each file
  int limit = 0;                 // texts or pictures of each; 0: all
};
// --data, --column, --pair-column, --header, --limit; `options` must outlive the parse.
void add_data_options(CLI::App& command, DataOptions& options);

// A request for the model and the data, without kernels and lengths. Without --data it names the bundled
// sentences, or for a vision model the example pictures. Throws Error, UsageError (a schedule: the model runs
// with softmax in every layer).
TeacherForcedRequest measure_request(const CommonOptions& common, const DataOptions& data);

// Measures with a progress bar on standard error, and prints the notes there.
TeacherForcedOutcome measure_with_progress(const TeacherForcedRequest& request, const std::string& label);

// Of each measure, the name of its data, which tells it from the other data's.
std::vector<std::string> data_names(const TeacherForcedOutcome& outcome);

} // namespace hydrascope::app
