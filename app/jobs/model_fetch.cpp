#include "app/jobs/model_fetch.h"

#include <chrono>

#include "app/document/edits.h"

namespace hydrascope::app {

void ModelFetch::start(const std::string& repository) {
  problem_.clear();
  progress_ = {};
  samples_.clear();
  jobs_.start(
      [repository, wake = wake_](BackgroundJob<Update>& job, const std::stop_token& stop) {
        std::chrono::steady_clock::time_point last;
        const auto observe = [&](const FetchProgress& progress) {
          job.publish({progress, std::nullopt});
          // Not a frame for every few kilobytes.
          const auto now = std::chrono::steady_clock::now();
          if (now - last < std::chrono::milliseconds(100)) return;
          last = now;
          if (wake) wake();
        };
        FetchedModel model = fetch_model(repository, "main", hub_settings(), observe, stop);
        job.publish({{}, std::move(model)});
      },
      wake_);
}

void ModelFetch::cancel() { jobs_.retire(); }

void ModelFetch::update(Editor& editor) {
  BackgroundJob<Update>* const job = jobs_.job();
  if (job == nullptr) return;
  const auto [updates, done, problem] = job->take();
  std::optional<FetchedModel> model;
  for (const Update& each : updates) {
    if (each.model) {
      model = each.model;
      continue;
    }
    progress_ = each.progress;
    samples_.push_back({editor.clock(), progress_.received});
  }
  constexpr double window = 3; // seconds
  while (samples_.size() > 1 && editor.clock() - samples_.front().seconds > window) samples_.pop_front();
  problem_ = problem;
  if (done) jobs_.finish();
  if (model && open_path(editor, model->folder)) editor.emit(HideOverlay{Overlay::get_model});
}

double ModelFetch::bytes_per_second(double now) const {
  if (samples_.empty()) return 0;
  const double seconds = now - samples_.front().seconds;
  constexpr double least = 0.25; // shorter periods give unsteady rates
  if (seconds < least) return 0;
  return static_cast<double>(samples_.back().received - samples_.front().received) / seconds;
}

} // namespace hydrascope::app
