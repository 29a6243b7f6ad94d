#include "app/jobs/map_checks.h"

#include "app/document/edits.h"

namespace hydrascope::app {

void MapChecks::start(const Editor& editor, const CheckMap& command) {
  command_ = command;
  place_ = map_place(editor.document());
  before_ = selected_kernel(editor.document());
  jobs_.start([name = command.name, text = command.text, shape = layer_shape(editor.document(), nullptr)](
                  BackgroundJob<CheckedMap>& job,
                  const std::stop_token&) { job.publish(check_map(name, text, shape)); },
              wake_);
}

bool MapChecks::update(Editor& editor) {
  BackgroundJob<CheckedMap>* const job = jobs_.job();
  if (job == nullptr || !job->done()) return false;
  const JobUpdate<CheckedMap> last = job->take();
  MapReport report{.number = editor.map_report.number + 1,
                   .place = place_,
                   .source = {command_.name, command_.text},
                   .result = {}};
  if (last.results.empty())
    report.result.problem = MapProblem{0, last.problem};
  else
    report.result = last.results.back();
  jobs_.finish();
  // Not over another kernel that was chosen meanwhile.
  const bool fits = !report.result.problem && place_ == map_place(editor.document()) &&
                    before_ == selected_kernel(editor.document());
  if (command_.apply && fits) set_map(editor, report.result.kernel, command_.everywhere, command_.gesture);
  editor.map_report = std::move(report);
  return true;
}

} // namespace hydrascope::app
