// Measures time against N in the background, when the user asks for it.
#pragma once

#include <cstddef>
#include <functional>
#include <variant>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"

namespace hydrascope::app {

// The kernels of both schedules, each once, A's first.
std::vector<KernelSpec> kernels_in_use(const Document& document);
// What they would be measured in; throws nothing, needs a model.
ScalingSetting scaling_setting(const Document& document);

using ScalingNews = std::variant<MachineLimits, ScalingPoint>;

// A thread of its own, of lower priority than the model's. It waits between runs of a kernel while the model
// computes, and makes a run again that the model has disturbed.
class ScalingRun {
public:
  // `wake` is called from the thread when a point has been measured.
  explicit ScalingRun(std::function<void()> wake);

  void start(Editor& editor); // all kernels in use; nothing without a model
  void stop(Editor& editor);  // what has been measured stays; no frame waits for the thread
  // Once per frame: puts what was measured into the editor. Returns whether anything has changed.
  bool update(Editor& editor, bool interactive_run);
  bool running() const { return jobs_.job() != nullptr; }

private:
  std::function<void()> wake_;
  JobSlot<ScalingNews> jobs_;
  std::size_t total_ = 0; // points that the job measures
};

} // namespace hydrascope::app
