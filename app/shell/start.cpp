// The initial document.
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/storage.h"
#include "app/shell/window.h"
#include "engine/base/error_message.h"

namespace hydrascope::app {

namespace {

// Whether the command line opens and sets nothing.
bool is_default(const WindowOptions& options) {
  const CommonOptions& common = options.common;
  return options.files.empty() && options.text.empty() && common.model.empty() && common.capture.empty() &&
         common.adapters.empty() && !common.no_adapter && common.schedule == ScheduleText{} &&
         common.execution == ExecutionOptions{} && common.image_size == 0;
}

// The command line overrides the session.
void apply_options(Document& document, const CommonOptions& common) {
  const ExecutionOptions& given = common.execution;
  const ExecutionOptions usual;
  ExecutionOptions& execution = document.execution;
  if (given.device != usual.device) execution.device = given.device;
  if (given.dtype != usual.dtype) execution.dtype = given.dtype;
  if (given.threads != usual.threads) execution.threads = given.threads;
  if (given.seed != usual.seed) execution.seed = given.seed;
  if (common.image_size > 0) execution.image_size = common.image_size;
  Scene& scene = document.scene();
  if (common.no_adapter || !common.adapters.empty()) {
    scene.adapters.automatic = false;
    scene.adapters.files.assign(common.adapters.begin(), common.adapters.end());
  }
  if (scene.model && !(common.schedule == ScheduleText{}))
    scene.schedules[0] = parse_schedule(common.schedule, scene.model->layers);
}

} // namespace

void start_document(Editor& editor, SessionStore& sessions, const WindowOptions& options) {
  ExecutionOptions execution = options.common.execution;
  if (execution.threads == 0) execution.threads = usual_threads();
  std::vector<std::string> problems;
  editor.set_initial(new_document(execution, problems));
  for (std::string& problem : problems) editor.say(Severity::error, std::move(problem));
  if (!options.common.model.empty()) open_model(editor, options.common.model);
  bool opened = false;
  if (!options.common.capture.empty()) opened = open_capture(editor, options.common.capture);
  for (const auto& file : options.files) opened |= open_path(editor, file);
  if (!options.text.empty()) {
    open_text(editor, options.text);
    opened = true;
  }
  if (is_default(options) && editor.settings().reopen_last)
    opened |= sessions.reopen_last(editor) && !editor.incomplete_session;
  Document ready = editor.document();
  if (!opened && options.files.empty() && ready.kind == InputKind::image && !is_capture(ready.scene())) {
    try {
      open_example_picture(ready);
    } catch (const std::exception& error) {
      editor.say(Severity::error, error_message(error));
    }
  }
  apply_options(ready, options.common);
  if (const auto& last = editor.settings().last; last && ready.session == 0) {
    ready.layout = last->name;
    ready.closed_panels = {last->closed.begin(), last->closed.end()};
  }
  editor.set_initial(std::move(ready)); // undo begins here
}

} // namespace hydrascope::app
