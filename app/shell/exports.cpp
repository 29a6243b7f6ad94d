#include "app/shell/exports.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/layout.h"
#include "app/ui/display.h"
#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

// Waits for the job and frees it. An error goes to stderr: the window is gone.
template <typename Result>
void finish_without_window(std::unique_ptr<BackgroundJob<Result>>& job) {
  job->wait();
  const std::string problem = job->take().problem;
  if (!problem.empty()) fmt::print(stderr, "error: {}\n", problem);
  job.reset();
}

} // namespace

void Exports::start(double now) {
  since_ = now;
  file_ = std::move(queue_.front().file);
  Figure figure = std::move(queue_.front().figure);
  queue_.pop_front();
  job_ = std::make_unique<BackgroundJob<std::filesystem::path>>(
      [figure = std::move(figure), file = file_](BackgroundJob<std::filesystem::path>& job,
                                                 const std::stop_token& stop) {
        write_figure(figure, file, {}, stop);
        job.publish(file);
      },
      [display = display_] { display->wake(); });
}

void Exports::finish(Editor& editor) {
  const JobUpdate<std::filesystem::path> last = job_->take();
  if (!last.problem.empty()) {
    editor.say(Severity::error, last.problem);
  } else {
    const bool written = !last.results.empty();
    if (written) ++written_;
    editor.say(Severity::note, (written ? "Written: " : "Not written: ") + file_.string());
  }
  job_.reset();
}

namespace {

constexpr int frames_to_front = 4; // until a panel is in front and its results are requested

} // namespace

void Exports::write(std::string panel, std::filesystem::path file) {
  panels_.push_back({std::move(panel), std::move(file)});
}

// A panel behind another has no results, or old ones.
void Exports::visit(Editor& editor, bool settled, const FigureOf& figure_of) {
  Waiting& next = panels_.front();
  const bool in_front = editor.status().panels_in_front.contains(next.panel);
  if (next.frames == 0 && !in_front) {
    if (!editor.panel_open(next.panel)) show_panel(editor, next.panel, next.panel, true);
    editor.emit(BringToFront{next.panel});
  }
  if ((++next.frames <= frames_to_front && !in_front) || !settled) return;
  if (std::optional<Figure> figure = figure_of(next.panel)) {
    queue_.push_back({std::move(*figure), std::move(next.file)});
  } else {
    editor.say(Severity::error,
               next.file.string() + ": the panel shows nothing of the present input and kernels");
  }
  panels_.pop_front();
}

void Exports::update(Editor& editor, bool settled, const FigureOf& figure_of) {
  if (!panels_.empty()) visit(editor, settled, figure_of);
  if (job_ && job_->done()) finish(editor);
  if (!job_ && !queue_.empty()) start(editor.clock());
}

void Exports::cancel() {
  panels_.clear();
  if (job_) job_->stop();
}

void Exports::shut_down() {
  while (job_ || !queue_.empty()) {
    if (!job_) start(since_);
    finish_without_window(job_);
  }
  for (const Waiting& each : panels_)
    fmt::print(stderr, "error: {}: not written, as its results were not complete\n", each.file.string());
}

std::string Exports::writing() const { return job_ ? file_.filename().string() : std::string(); }

double Exports::seconds(double now) const { return job_ ? now - since_ : 0; }

namespace {

namespace fs = std::filesystem;

std::string folder_name(const Editor& editor) {
  const fs::path& file = editor.session().file;
  return file.empty() ? "hydrascope-figures" : file.stem().string() + "-figures";
}

} // namespace

std::string EverythingExport::state() const {
  if (job_) return folder_.filename().string();
  if (panels_.empty()) return {};
  return fmt::format("{} ({} of {})", panels_[next_].title, next_ + 1, panels_.size());
}

void EverythingExport::begin(Editor& editor, const std::vector<PanelName>& panels, const fs::path& folder) {
  folder_ = free_export_folder(folder, folder_name(editor));
  written_.clear();
  error_.clear();
  arrangement_ = present_arrangement();
  content_ = new_export(editor, arrangement_);
  next_ = 0;
  frames_ = 0;
  for (const PanelName& panel : panels) {
    if (panel.exports && editor.panel_open(panel.id)) panels_.push_back(panel);
  }
  if (panels_.empty()) editor.say(Severity::error, "export: no panel that has a figure is open");
}

void EverythingExport::visit(Editor& editor, bool settled, const FigureOf& figure_of) {
  const PanelName& panel = panels_[next_];
  if (frames_ == 0) editor.emit(BringToFront{panel.id});
  if (++frames_ <= frames_to_front || !settled) return;
  if (std::optional<Figure> figure = figure_of(panel.id)) {
    content_.panels.push_back({panel.id, panel.title, std::move(*figure)});
  } else {
    content_.empty.push_back(panel.title);
  }
  frames_ = 0;
  if (++next_ < panels_.size()) return;
  panels_.clear();
  editor.emit(RestoreArrangement{arrangement_});
  write(editor);
}

void EverythingExport::write(Editor& editor) {
  if (content_.panels.empty()) {
    error_ = folder_.string() + ": no open panel shows anything of the present input and kernels";
    return editor.say(Severity::error, error_);
  }
  job_ = std::make_unique<BackgroundJob<std::size_t>>(
      [content = std::exchange(content_, {}), folder = folder_](BackgroundJob<std::size_t>& job,
                                                                const std::stop_token& stop) {
        write_export_folder(content, folder, {}, stop);
        job.publish(content.panels.size());
      },
      [display = display_] { display->wake(); });
}

void EverythingExport::finish(Editor& editor) {
  const auto [figures, done, problem] = job_->take();
  error_ = problem;
  job_.reset();
  if (!error_.empty()) {
    editor.say(Severity::error, error_);
  } else if (figures.empty()) {
    error_ = "Not written: " + folder_.string();
    editor.say(Severity::note, error_);
  } else {
    written_ = folder_;
    ++folders_written_;
    editor.say(Severity::note,
               fmt::format("Written: {} ({} figures)", (folder_ / "index.html").string(), figures.front()));
  }
}

void EverythingExport::shut_down() {
  if (job_) {
    if (cancelled_) job_->stop();
    finish_without_window(job_);
  }
  constexpr auto message = "error: {}: not written, as the results were not complete\n";
  if (active() && !cancelled_) fmt::print(stderr, message, folder_.string());
  if (next_folder_) fmt::print(stderr, message, next_folder_->string());
}

void EverythingExport::update(Editor& editor, const std::vector<PanelName>& panels, bool settled,
                              const FigureOf& figure_of) {
  if (job_ && job_->done()) finish(editor);
  if (!active() && next_folder_) begin(editor, panels, *std::exchange(next_folder_, std::nullopt));
  if (std::exchange(cancelled_, false)) {
    if (job_) job_->stop();
    if (!panels_.empty()) {
      panels_.clear();
      editor.emit(RestoreArrangement{arrangement_});
      error_ = "Not written: " + folder_.string();
      editor.say(Severity::note, error_);
    }
  }
  if (!panels_.empty()) visit(editor, settled, figure_of);
}

} // namespace hydrascope::app
