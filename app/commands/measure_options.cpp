#include "app/commands/measure_options.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "app/commands/progress_bar.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

void add_data_options(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data", options.data,
                  "text: files with a text a line, or a column of tab-separated lines; images: folders")
      ->delimiter(',');
  command.add_option("--column", options.column, "column of tab-separated lines, from 1")
      ->check(CLI::PositiveNumber);
  command.add_flag("--header", options.header, "skip the first line of each file");
  command
      .add_option("--limit", options.limit,
                  "the first texts of each file, or so many pictures taken evenly from each folder")
      ->check(CLI::PositiveNumber);
}

TeacherForcedRequest measure_request(const CommonOptions& common, const DataOptions& data) {
  if (common.schedule != ScheduleText{})
    throw UsageError("--kernel, --replace and --layers", "teacher-forced runs have softmax in every layer",
                     "name the kernels to compare with --kernels");
  const bool pictures = !data.data.empty() && std::filesystem::is_directory(data.data.front());
  const RunRequest run = make_request(common, pictures ? InputKind::image : InputKind::text);
  TeacherForcedRequest request;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.execution = run.execution;
  request.data.assign(data.data.begin(), data.data.end());
  request.column = data.column;
  request.header = data.header;
  request.limit = data.limit;
  if (request.data.empty()) {
    const bool images = read_model_info(request.model_folder).input == InputKind::image;
    request.data = {images ? examples_folder() : assets_folder() / "sentences.txt"};
  }
  return request;
}

TeacherForcedOutcome measure_with_progress(const TeacherForcedRequest& request, const std::string& label) {
  TeacherForcedOutcome outcome;
  if (request.share.rank == 0) {
    ProgressBar bar(label);
    outcome = measure_teacher_forced(request,
                                     [&](std::int64_t done, std::int64_t total) { bar.show(done, total); });
  } else {
    outcome = measure_teacher_forced(request);
  }
  for (const std::string& note : outcome.notes) fmt::print(stderr, "note: {}\n", note);
  return outcome;
}

std::string decimal(double value) { return std::isnan(value) ? "—" : fmt::format("{:.3f}", value); }

nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

} // namespace hydrascope::app
