// The background jobs that run the model over a folder of pictures. Each has a thread and a runner of its own
// and waits between pictures while an interactive run is in progress.
#pragma once

#include <chrono>
#include <cstdint>
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

// Predicts every picture, so that wrong predictions can be shown first (Editor::checks). With the newer
// weights of an adapter in training all are predicted again, one pass after the other; each takes the weights
// that are the newest when its turn comes.
class FolderCheck {
public:
  // `wake` is called from the thread when there are results, a few times a second.
  FolderCheck(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  // Once per frame: starts and stops the job as the document requires and takes its results. `live` is the
  // file of the adapter in training (empty: none), and `edition` the number of its version. Returns whether
  // anything changed.
  bool update(Editor& editor, bool interactive_run, const std::filesystem::path& live, std::uint64_t edition);

private:
  void start(Editor& editor, std::uint64_t edition);
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<CheckedPicture> jobs_;
  std::chrono::steady_clock::time_point began_, ended_; // the last pass
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
