// Runs the model over a folder's pictures in the background, so that the wrong ones can be shown first.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "app/state/editor.h"

namespace hydrascope::app {

// A thread with a runner, and so weights, of its own. It waits between pictures while an interactive run is
// under way.
class FolderCheck {
public:
  // `wake` is called from the thread when something has been found.
  explicit FolderCheck(std::function<void()> wake);
  ~FolderCheck();
  FolderCheck(const FolderCheck&) = delete;
  FolderCheck& operator=(const FolderCheck&) = delete;

  // Once per frame: starts when the document wants the wrong pictures first, stops when it no longer does or
  // when model or kernels have changed, and puts what has been found into the editor. Returns whether
  // anything was.
  bool update(Editor& editor, bool interactive_run);

private:
  class Job;
  std::function<void()> wake_;
  void retire();

  std::unique_ptr<Job> job_;                  // null as long as nobody has asked
  std::vector<std::unique_ptr<Job>> retired_; // told to stop; a frame does not wait for them
};

} // namespace hydrascope::app
