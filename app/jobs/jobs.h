// All background work that goes on whatever panels are drawn: owned, shown and stopped here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/jobs/folder_check.h"
#include "app/jobs/folder_measure.h"
#include "app/jobs/model_fetch.h"
#include "app/jobs/scaling_run.h"
#include "app/jobs/training_job.h"

namespace hydrascope::app {

// A job that runs, as the status bar shows it.
struct JobState {
  std::string text; // "training 40 %"
  std::string details;
  bool paused = false; // by the user
};

class Jobs {
public:
  // `wake` is called from the jobs' threads; `models` are those that the window runs, too.
  Jobs(const std::function<void()>& wake, const std::shared_ptr<ModelStore>& models);

  ScalingRun scaling;
  TrainingJob training;
  FolderMeasure folder;
  ModelFetch fetch;

  // Once per frame: puts what has been found into the editor, and lets the jobs wait while an interactive run
  // is under way. Returns whether anything has changed.
  bool update(Editor& editor, bool interactive_run);
  // Before the program ends: a training keeps a checkpoint.
  void leave(Editor& editor);

private:
  FolderCheck check_;
};

std::vector<JobState> running_jobs(const Editor& editor);

} // namespace hydrascope::app
