// Downloads a model from the Hugging Face Hub in the background and opens it.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/models/hub/hub.h"

namespace hydrascope::app {

class ModelFetch {
public:
  // `wake` is called from the thread on progress, a few times a second.
  explicit ModelFetch(std::function<void()> wake) : wake_(std::move(wake)) {}

  void start(const std::string& repository);
  void cancel(); // the cache keeps what was downloaded
  // Once per frame: takes the progress, and opens the model once it is complete.
  void update(Editor& editor);

  bool running() const { return jobs_.job() != nullptr; }
  const FetchProgress& progress() const { return progress_; }
  double bytes_per_second(double now) const; // over the last three seconds; `now` on the window's clock
  const std::string& problem() const { return problem_; } // why the last download failed; empty if it did not
  void clear_problem() { problem_.clear(); }

private:
  struct Update {
    FetchProgress progress;
    std::optional<FetchedModel> model; // once it is complete
  };
  struct Sample {
    double seconds = 0;
    std::int64_t received = 0;
  };

  std::function<void()> wake_;
  JobSlot<Update> jobs_;
  FetchProgress progress_;
  std::deque<Sample> samples_; // of the last seconds
  std::string problem_;
};

} // namespace hydrascope::app
