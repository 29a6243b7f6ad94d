// Measures every picture of a folder in the background, when the user asks for it.
#pragma once

#include <functional>
#include <memory>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/run/model_source.h"

namespace hydrascope::app {

// A thread with a runner of its own. It waits between pictures while an interactive run is
// under way. Everything is taken by value: what the document becomes meanwhile makes no difference.
class FolderMeasure {
public:
  // `wake` is called from the thread when something has been measured, a few times a second.
  FolderMeasure(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  void start(Editor& editor); // nothing without a folder and a model
  void stop(Editor& editor);  // what has been measured stays; no frame waits for the thread
  // Once per frame: puts what was measured into the editor. Returns whether anything has changed.
  bool update(Editor& editor, bool interactive_run);

private:
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<PictureMeasures> jobs_;
};

} // namespace hydrascope::app
