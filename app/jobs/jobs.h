// All background jobs: owned, reported and stopped here, independently of the panels that are drawn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/jobs/folder_jobs.h"
#include "app/jobs/map_checks.h"
#include "app/jobs/model_fetch.h"
#include "app/jobs/scaling_run.h"
#include "app/jobs/training_job.h"
#include "app/jobs/writing_job.h"

namespace hydrascope::app {

// A running job, for the status bar.
struct JobState {
  std::string text; // "training 40 %"
  std::string details;
  bool paused = false; // by the user
};

class Jobs {
public:
  // `wake` is called from the jobs' threads; `models` is shared with the window's worker.
  Jobs(const std::function<void()>& wake, const std::shared_ptr<ModelStore>& models);

  ScalingRun scaling;
  TrainingJob training;
  WritingJob writing;
  FolderMeasure folder;
  ModelFetch fetch;
  MapChecks maps;

  // Once per frame: takes the results into the editor, and pauses the jobs during an interactive run, and
  // most of them while a decoder writes. Returns whether anything changed.
  bool update(Editor& editor, bool interactive_run);
  // Before the program ends: stops the training with a checkpoint.
  void shut_down(Editor& editor);

private:
  FolderCheck check_;
};

std::vector<JobState> running_jobs(const Editor& editor);

} // namespace hydrascope::app
