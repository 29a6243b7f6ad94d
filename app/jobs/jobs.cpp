#include "app/jobs/jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/views/training_view.h"

namespace hydrascope::app {

Jobs::Jobs(const std::function<void()>& wake, const std::shared_ptr<ModelStore>& models)
    : scaling(wake),
      training(wake, models),
      writing(wake, models),
      folder(wake, models),
      fetch(wake),
      maps(wake),
      check_(wake, models) {}

bool Jobs::update(Editor& editor, bool interactive_run) {
  const bool typed = maps.update(editor);
  const bool written = writing.update(editor, interactive_run);
  const bool awaited = interactive_run || editor.writing.running; // by the user, who looks on
  const bool checked = check_.update(editor, awaited, training.live_file(), training.edition());
  const bool measured = scaling.update(editor, awaited);
  const bool folder_measured = folder.update(editor, awaited || editor.scaling.running);
  const bool trained = training.update(editor, awaited || editor.scaling.running);
  fetch.update(editor);
  return typed || written || checked || measured || folder_measured || trained;
}

void Jobs::shut_down(Editor& editor) { training.shut_down(editor); }

std::vector<JobState> running_jobs(const Editor& editor) {
  std::vector<JobState> states;
  const TrainingReport& training = editor.training;
  if (training.active())
    states.push_back({.text = fmt::format("training {:.0f} %{}", 100 * training_share(training),
                                          training.paused ? ", paused" : ""),
                      .details = training_progress_text(training),
                      .paused = training.paused});
  if (const Writing& writing = editor.writing; writing.running)
    states.push_back({.text = fmt::format("writing, {} tokens", writing.sides[0].tokens.size()),
                      .details = "waits while the model runs for another panel"});
  const ScalingCurves& scaling = editor.scaling;
  if (scaling.running)
    states.push_back({.text = fmt::format("time against N {:.0f} %", 100 * scaling.progress),
                      .details = "measured in the background, while nothing else runs"});
  const FolderMeasures& folder = editor.folder;
  if (folder.running)
    states.push_back(
        {.text =
             fmt::format("folder {:.0f} %", 100 * static_cast<double>(folder.pictures.size()) /
                                                static_cast<double>(std::max<std::size_t>(1, folder.total))),
         .details = fmt::format("{} of {} pictures measured", folder.pictures.size(), folder.total)});
  const PictureChecks& checks = editor.checks;
  if (checks.running)
    states.push_back(
        {.text = fmt::format("wrong first {:.0f} %",
                             100 * static_cast<double>(checks.predicted()) /
                                 static_cast<double>(std::max<std::size_t>(1, checks.total))),
         .details = fmt::format("{} of {} pictures predicted", checks.predicted(), checks.total)});
  return states;
}

} // namespace hydrascope::app
