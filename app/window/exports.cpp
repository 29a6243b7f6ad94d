#include "app/window/exports.h"

#include <utility>

#include "app/window/display.h"

namespace hydrascope::app {

Exports::Exports(Display& display) : display_(&display) {}

void Exports::start(Figure figure, double now) {
  since_ = now;
  job_ = std::make_unique<BackgroundJob<std::filesystem::path>>(
      [figure = std::move(figure), file = file_](BackgroundJob<std::filesystem::path>& job,
                                                 const std::stop_token& stop) {
        write_figure(figure, file, {}, stop);
        job.publish(file);
      },
      [display = display_] { display->wake(); });
}

void Exports::finish(Editor& editor) {
  const std::string problem = job_->take_problem();
  if (!problem.empty()) {
    editor.say(Severity::error, problem);
  } else {
    const bool written = !job_->take().empty();
    editor.say(Severity::note, (written ? "Written: " : "Not written: ") + file_.string());
  }
  job_.reset();
}

void Exports::update(Editor& editor,
                     const std::function<std::optional<Figure>(const std::string&)>& figure_of) {
  if (job_ && job_->done()) finish(editor);
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
  if (job_) job_->stop();
}

std::string Exports::writing() const { return job_ ? file_.filename().string() : std::string(); }

double Exports::seconds(double now) const { return job_ ? now - since_ : 0; }

} // namespace hydrascope::app
