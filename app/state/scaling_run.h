// Measures time against N in the background, when the user asks for it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "app/state/editor.h"

namespace hydrascope::app {

// A thread of its own, of lower priority than the model's. It waits between runs of a kernel while the model
// computes, and makes a run again that the model has disturbed.
class ScalingRun {
public:
  // `wake` is called from the thread when a point has been measured.
  explicit ScalingRun(std::function<void()> wake);
  ~ScalingRun();
  ScalingRun(const ScalingRun&) = delete;
  ScalingRun& operator=(const ScalingRun&) = delete;

  // Once per frame: starts and stops what the shell asks for, and puts what was measured into the editor.
  // Returns whether anything has changed.
  bool update(Editor& editor, bool interactive_run);
  bool running() const { return job_ != nullptr; }

private:
  class Job;
  void retire();

  std::function<void()> wake_;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<Job>> retired_; // told to stop; a frame does not wait for them
};

} // namespace hydrascope::app
