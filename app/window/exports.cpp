#include "app/window/exports.h"

#include <atomic>
#include <exception>
#include <stop_token>
#include <thread>
#include <utility>

#include "app/window/display.h"
#include "engine/plain/error.h"

namespace hydrascope::app {

struct Exports::Job {
  Figure figure;
  std::string error; // the thread's alone until `done`
  bool cancelled = false;
  std::atomic<bool> done = false;
  std::jthread thread; // last: joined before what it uses goes
};

Exports::Exports(Display& display) : display_(&display) {}
Exports::~Exports() = default;

void Exports::start(Figure figure, std::filesystem::path file, double now) {
  file_ = std::move(file);
  since_ = now;
  job_ = std::make_unique<Job>();
  job_->figure = std::move(figure);
  job_->thread =
      std::jthread([job = job_.get(), file = file_, display = display_](const std::stop_token& stop) {
        try {
          write_figure(job->figure, file, {}, stop);
        } catch (const Cancelled&) {
          job->cancelled = true;
        } catch (const std::exception& error) {
          job->error = error.what();
        }
        job->done = true;
        display->wake();
      });
}

void Exports::cancel() {
  if (job_) job_->thread.request_stop();
}

void Exports::poll(Editor& editor) {
  if (!job_ || !job_->done) return;
  job_->thread.join();
  if (job_->cancelled) {
    editor.say(Severity::note, "Not written: " + file_.string());
  } else if (!job_->error.empty()) {
    editor.say(Severity::error, job_->error);
  } else {
    editor.say(Severity::note, "Written: " + file_.string());
  }
  job_.reset();
}

} // namespace hydrascope::app
