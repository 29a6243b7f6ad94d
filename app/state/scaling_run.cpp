#include "app/state/scaling_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "engine/plain/error.h"

namespace hydrascope::app {

std::vector<KernelSpec> kernels_in_use(const Document& document) {
  std::vector<KernelSpec> kernels;
  for (const Schedule& schedule : document.scene().schedules) {
    for (const KernelSpec& kernel : schedule.layers) {
      if (std::ranges::count(kernels, kernel) == 0) kernels.push_back(kernel);
    }
  }
  return kernels;
}

ScalingSetting scaling_setting(const Document& document) {
  const ModelInfo& model = *document.scene().model;
  return {.heads = model.heads,
          .head_width = model.width / std::max(model.heads, 1),
          .image = model.input == InputKind::image,
          .dtype = document.execution.dtype,
          .threads = document.execution.threads};
}

std::vector<ScalingPoint> points_of(const ScalingCurves& curves, const KernelSpec& kernel) {
  std::vector<ScalingPoint> points;
  for (const ScalingPoint& point : curves.points)
    if (point.kernel == kernel) points.push_back(point);
  std::ranges::sort(points, {}, &ScalingPoint::tokens);
  return points;
}

class ScalingRun::Job {
public:
  Job(std::vector<KernelSpec> kernels, ScalingSetting setting, std::function<void()> wake)
      : wake_(std::move(wake)), kernels_(std::move(kernels)), setting_(std::move(setting)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  // What the model does: while it computes, nothing is measured.
  void pause(bool paused) {
    {
      const std::scoped_lock lock(mutex_);
      if (paused && !paused_) ++disturbances_;
      paused_ = paused;
    }
    changed_.notify_all();
  }
  std::vector<ScalingPoint> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(points_, {});
  }
  std::string take_problem() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(problem_, {});
  }
  std::size_t total() const { return kernels_.size() * scaling_lengths().size(); }
  bool done() const { return done_; }
  void stop() { thread_.request_stop(); }

private:
  void run(const std::stop_token& stop) {
    // Threads that LibTorch starts for this one inherit it.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
    try {
      measure_all(stop);
    } catch (const Cancelled&) { // NOLINT(bugprone-empty-catch): nobody waits for the rest
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      problem_ = error.what();
    }
    done_ = true;
    if (wake_) wake_();
  }

  // All kernels at one N before the next N, so that what there is can be compared at any time.
  void measure_all(const std::stop_token& stop) {
    std::vector<std::unique_ptr<ScalingMeasurer>> measurers;
    for (const KernelSpec& kernel : kernels_)
      measurers.push_back(std::make_unique<ScalingMeasurer>(kernel, setting_));
    for (const std::int64_t tokens : scaling_lengths()) {
      for (const auto& measurer : measurers) {
        ScalingPoint point = measurer->measure(tokens, stop, [this, &stop] { return quiet(stop); });
        {
          const std::scoped_lock lock(mutex_);
          points_.push_back(std::move(point));
        }
        if (wake_) wake_();
        if (stop.stop_requested()) return;
      }
    }
  }

  std::uint64_t quiet(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return !paused_; });
    return disturbances_;
  }

  std::function<void()> wake_;
  std::vector<KernelSpec> kernels_;
  ScalingSetting setting_;
  std::atomic<bool> done_ = false;
  std::mutex mutex_; // of what follows
  std::condition_variable_any changed_;
  bool paused_ = false;
  std::uint64_t disturbances_ = 0;
  std::vector<ScalingPoint> points_;
  std::string problem_;
  std::jthread thread_; // last: joined before what it uses goes
};

ScalingRun::ScalingRun(std::function<void()> wake) : wake_(std::move(wake)) {}
ScalingRun::~ScalingRun() = default;

void ScalingRun::retire() {
  if (!job_) return;
  job_->stop();
  retired_.push_back(std::move(job_));
}

bool ScalingRun::update(Editor& editor, bool interactive_run) {
  ScalingCurves& curves = editor.scaling;
  std::erase_if(retired_, [](const auto& job) { return job->done(); });
  bool changed = false;
  if (std::exchange(editor.shell.stop_scaling, false)) {
    changed = curves.running;
    retire();
    curves.running = false;
  }
  if (std::exchange(editor.shell.measure_scaling, false) && editor.document().scene().model) {
    retire();
    const std::vector<KernelSpec> kernels = kernels_in_use(editor.document());
    const ScalingSetting setting = scaling_setting(editor.document());
    if (curves.setting != setting) curves.points.clear();
    std::erase_if(curves.points,
                  [&](const ScalingPoint& point) { return std::ranges::count(kernels, point.kernel) > 0; });
    curves.setting = setting;
    curves.device = "cpu";
    curves.running = true;
    curves.progress = 0;
    job_ = std::make_unique<Job>(kernels, setting, wake_);
    changed = true;
  }
  if (!job_) return changed;
  job_->pause(interactive_run);
  const bool done = job_->done(); // asked before the last of them is taken
  std::vector<ScalingPoint> found = job_->take();
  curves.progress +=
      static_cast<double>(found.size()) / static_cast<double>(std::max<std::size_t>(1, job_->total()));
  changed = changed || done || !found.empty();
  std::ranges::move(found, std::back_inserter(curves.points));
  if (const std::string problem = job_->take_problem(); !problem.empty())
    editor.say(Severity::error, problem);
  if (done) {
    curves.running = false;
    job_.reset();
  }
  return changed;
}

} // namespace hydrascope::app
