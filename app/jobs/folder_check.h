// Runs the model over a folder's pictures in the background, so that the wrong ones can be shown first.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/run/model_source.h"

namespace hydrascope::app {

struct FoundCheck {
  std::filesystem::path file;
  PictureCheck check;
};

// A thread with a runner of its own. It waits between pictures while an interactive run is
// under way.
class FolderCheck {
public:
  // `wake` is called from the thread when something has been found.
  FolderCheck(std::function<void()> wake, std::shared_ptr<ModelStore> models);

  // Once per frame: starts when the document wants the wrong pictures first, stops when it no longer does or
  // when model or kernels have changed, and puts what has been found into the editor. Returns whether
  // anything was.
  bool update(Editor& editor, bool interactive_run);

private:
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<FoundCheck> jobs_; // no job as long as nobody has asked
};

} // namespace hydrascope::app
