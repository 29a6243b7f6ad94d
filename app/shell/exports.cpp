#include "app/shell/exports.h"

#include <utility>

#include "app/ui/display.h"

namespace hydrascope::app {

Exports::Exports(Display& display) : display_(&display) {}

void Exports::start(double now) {
  since_ = now;
  file_ = std::move(waiting_.front().file);
  Figure figure = std::move(waiting_.front().figure);
  waiting_.pop_front();
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

void Exports::write(std::optional<Figure> figure, std::filesystem::path file, Editor& editor) {
  if (!figure)
    return editor.say(Severity::error,
                      file.string() + ": the panel shows nothing yet; wait until the model has run");
  waiting_.push_back({std::move(*figure), std::move(file)});
  if (!job_) start(editor.clock());
}

void Exports::update(Editor& editor) {
  if (job_ && job_->done()) finish(editor);
  if (!job_ && !waiting_.empty()) start(editor.clock());
}

void Exports::cancel() {
  if (job_) job_->stop();
}

std::string Exports::writing() const { return job_ ? file_.filename().string() : std::string(); }

double Exports::seconds(double now) const { return job_ ? now - since_ : 0; }

} // namespace hydrascope::app
