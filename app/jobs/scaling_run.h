// Measures time against N in the background, on request.
#pragma once

#include <cstddef>
#include <functional>
#include <variant>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"

namespace hydrascope::app {

// The kernels of both schedules, each once, A's first; then the forms of softmax that are not among them.
std::vector<KernelSpec> measured_kernels(const Document& document);
// The setting they are measured in. The document needs a model.
ScalingSetting scaling_setting(const Editor& editor);

using ScalingResult = std::variant<MachineLimits, ScalingPoint>;

// Has a thread of lower priority than the model's. Waits between a kernel's runs while the model computes,
// and repeats measurements that the model disturbed.
class ScalingRun {
public:
  // `wake` is called from the thread for each point.
  explicit ScalingRun(std::function<void()> wake);

  void start(Editor& editor); // all kernels in use; does nothing without a model
  void stop(Editor& editor);  // keeps the points
  // Once per frame: takes the results into the editor. Returns whether anything changed.
  bool update(Editor& editor, bool interactive_run);
  bool running() const { return jobs_.job() != nullptr; }

private:
  std::function<void()> wake_;
  JobSlot<ScalingResult> jobs_;
  std::size_t total_ = 0; // points to be measured
};

} // namespace hydrascope::app
