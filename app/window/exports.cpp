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

void Exports::start(Figure figure, double now) {
  since_ = now;
  job_ = std::make_unique<Job>();
  job_->figure = std::move(figure);
  const auto work = [job = job_.get(), file = file_, display = display_](const std::stop_token& stop) {
    try {
      write_figure(job->figure, file, {}, stop);
    } catch (const Cancelled&) {
      job->cancelled = true;
    } catch (const std::exception& error) {
      job->error = error.what();
    }
    job->done = true;
    display->wake();
  };
  job_->thread = std::jthread(work);
}

void Exports::finish(Editor& editor) {
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

void Exports::update(Editor& editor,
                     const std::function<std::optional<Figure>(const std::string&)>& figure_of) {
  if (job_ && job_->done) finish(editor);
  Shell& shell = editor.shell;
  if (job_) {
    shell.animate = true; // the status bar says how long it takes
    return;
  }
  if (shell.panel_to_export.empty()) return;
  if (!shell.export_file) {
    shell.dialog = Dialog::export_figure;
    return;
  }
  const std::string panel = std::exchange(shell.panel_to_export, {});
  file_ = *shell.export_file;
  shell.export_file.reset();
  std::optional<Figure> figure = figure_of(panel);
  if (!figure) {
    editor.say(Severity::error,
               file_.string() + ": the panel shows nothing yet; wait until the model has run");
    return;
  }
  start(std::move(*figure), editor.clock());
  shell.animate = true;
}

void Exports::cancel() {
  if (job_) job_->thread.request_stop();
}

std::string Exports::writing() const { return job_ ? file_.filename().string() : std::string(); }

double Exports::seconds(double now) const { return job_ ? now - since_ : 0; }

} // namespace hydrascope::app
