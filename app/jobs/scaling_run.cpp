#include "app/jobs/scaling_run.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "engine/run/devices.h"
#include "engine/run/run.h"

namespace hydrascope::app {

std::vector<KernelSpec> measured_kernels(const Document& document) {
  std::vector<KernelSpec> kernels;
  const auto add = [&](const KernelSpec& kernel) {
    if (std::ranges::count(kernels, kernel) == 0) kernels.push_back(kernel);
  };
  for (const Schedule& schedule : document.scene().schedules)
    for (const KernelSpec& kernel : schedule.layers) add(kernel);
  for (const KernelSpec& form : softmax_forms(document.execution.device)) add(form);
  return kernels;
}

ScalingSetting scaling_setting(const Editor& editor) {
  const Document& document = editor.document();
  ScalingSetting setting{.dtype = document.execution.dtype,
                         .threads = document.execution.threads,
                         // Two names of one device are not two settings.
                         .device = listed_name(editor.status().devices.get(), document.execution.device)};
  set_heads_of(*document.scene().model, setting);
  return setting;
}

namespace {

// All kernels at one N before the next N, so that partial results are comparable.
void measure_all(BackgroundJob<ScalingResult>& job, const std::vector<KernelSpec>& kernels,
                 const ScalingSetting& setting, const std::function<void()>& wake,
                 const std::stop_token& stop) {
  // LibTorch's threads inherit it.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  for (bool disturbed = true; disturbed;) {
    const std::uint64_t before = job.wait_while_paused(stop);
    if (stop.stop_requested()) return;
    const ThreadCount threads(setting.threads);
    const MachineLimits limits = machine_limits(setting.dtype, setting.device);
    disturbed = job.wait_while_paused(stop) != before; // by a run of the model, which lowers them
    if (!disturbed) job.publish(limits);
  }
  std::vector<std::unique_ptr<ScalingMeasurer>> measurers;
  for (const KernelSpec& kernel : kernels)
    measurers.push_back(std::make_unique<ScalingMeasurer>(kernel, setting));
  for (const std::int64_t tokens : scaling_lengths()) {
    for (const auto& measurer : measurers) {
      // Waits while the model computes; interrupted measurements are repeated.
      job.publish(measurer->measure(tokens, stop, [&job, &stop] { return job.wait_while_paused(stop); }));
      if (wake) wake();
      if (stop.stop_requested()) return;
    }
  }
}

} // namespace

ScalingRun::ScalingRun(std::function<void()> wake) : wake_(std::move(wake)) {}

void ScalingRun::start(Editor& editor) {
  if (!editor.document().scene().model) return;
  ScalingCurves& curves = editor.scaling;
  const std::vector<KernelSpec> kernels = measured_kernels(editor.document());
  const ScalingSetting setting = scaling_setting(editor);
  if (curves.setting != setting) curves.points.clear();
  std::erase_if(curves.points,
                [&](const ScalingPoint& point) { return std::ranges::count(kernels, point.kernel) > 0; });
  curves.setting = setting;
  curves.running = true;
  curves.progress = 0;
  total_ = kernels.size() * scaling_lengths().size();
  jobs_.start(
      [kernels, setting, wake = wake_](BackgroundJob<ScalingResult>& job, const std::stop_token& stop) {
        measure_all(job, kernels, setting, wake, stop);
      },
      wake_);
}

void ScalingRun::stop(Editor& editor) {
  jobs_.retire();
  editor.scaling.running = false;
}

bool ScalingRun::update(Editor& editor, bool interactive_run) {
  BackgroundJob<ScalingResult>* const job = jobs_.job();
  if (job == nullptr) return false;
  ScalingCurves& curves = editor.scaling;
  job->pause(interactive_run);
  auto [found, done, problem] = job->take();
  const bool changed = !found.empty();
  for (ScalingResult& result : found) {
    if (const auto* const limits = std::get_if<MachineLimits>(&result)) {
      curves.limits = *limits;
      continue;
    }
    curves.points.push_back(std::get<ScalingPoint>(std::move(result)));
    curves.progress += 1 / static_cast<double>(std::max<std::size_t>(1, total_));
  }
  if (!problem.empty()) editor.say(Severity::error, problem);
  if (done) {
    curves.running = false;
    jobs_.finish();
  }
  return done || changed;
}

} // namespace hydrascope::app
