// The background jobs that run the model over a folder of pictures. Each has a thread and a runner of its own
// and waits between pictures while an interactive run is in progress.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/run/model_store.h"

namespace hydrascope::app {

struct CheckedPicture {
  std::filesystem::path file;
  PictureCheck check;
};

// Predicts every picture, so that wrong predictions can be shown first (Editor::checks).
class FolderCheck {
public:
  // `wake` is called from the thread when there are results, a few times a second.
  FolderCheck(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  // Once per frame: starts and stops the job as the document requires and takes its results. Returns whether
  // anything changed.
  bool update(Editor& editor, bool interactive_run);

private:
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<CheckedPicture> jobs_;
};

// Compares A's schedule with softmax on every picture, on request (Editor::folder). Works on values: later
// changes of the document have no effect.
class FolderMeasure {
public:
  // `wake` as above.
  FolderMeasure(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  void start(Editor& editor); // does nothing without a folder and a model
  void stop(Editor& editor);  // keeps the results
  // Once per frame: takes the results. Returns whether anything changed.
  bool update(Editor& editor, bool interactive_run);

private:
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<PictureMeasures> jobs_;
};

// The settings of the document that FolderMeasures depend on: folder, model, adapters, A's schedule,
// execution, muted heads.
std::string folder_measure_key(const Document& document);

} // namespace hydrascope::app
