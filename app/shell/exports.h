// Writing figures into files: one at a time, or those of all open panels at once. Threads write, so that no
// frame waits.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/document/layouts.h"
#include "app/jobs/background_job.h"
#include "app/shell/export_folder.h"

namespace hydrascope::app {

class Display;

// The figure that a panel exports; nullopt if it shows nothing.
using FigureOf = std::function<std::optional<Figure>(const std::string& panel)>;

// A queue of figures, each with its file.
class Exports {
public:
  // Wakes the display when a figure was written; the display must outlive this.
  explicit Exports(Display& display) : display_(&display) {}

  // Appends the figure of a panel, which comes to the front if it is not there, and is written once it has
  // its results. Reports an error if it shows nothing then.
  void write(std::string panel, std::filesystem::path file);
  // Once per frame: takes figures, reports what was written, and starts with the next one. `settled`: the
  // panels in front have their results.
  void update(Editor& editor, bool settled, const FigureOf& figure_of);
  void cancel(); // the current one, and those that wait for results
  // Before the program ends: writes the figures that are complete. What was not written goes to stderr.
  void shut_down();

  bool busy() const { return job_ != nullptr || !panels_.empty(); }
  std::size_t written() const { return written_; } // figures so far
  std::string writing() const;                     // name of the current file; empty if there is none
  double seconds(double now) const;                // since its start, on the window's clock

private:
  void visit(Editor& editor, bool settled, const FigureOf& figure_of);
  void start(double now);
  void finish(Editor& editor);

  struct Waiting {
    std::string panel;
    std::filesystem::path file;
    int frames = 0; // since it was brought to the front
  };
  struct Queued {
    Figure figure;
    std::filesystem::path file;
  };
  Display* display_;
  std::deque<Waiting> panels_; // whose figures are not complete yet
  std::deque<Queued> queue_;
  std::filesystem::path file_;
  double since_ = 0;
  std::size_t written_ = 0;
  std::unique_ptr<BackgroundJob<std::filesystem::path>> job_; // publishes the file once it is complete
};

// Exports the figures of all open panels into a folder: brings each panel to the front until its results are
// complete, then writes the folder.
class EverythingExport {
public:
  // Wakes the display when the folder was written; the display must outlive this.
  explicit EverythingExport(Display& display) : display_(&display) {}

  // Starts, after the current export.
  void start(std::filesystem::path folder) { next_folder_ = std::move(folder); }
  // Once per frame: continues, and reports the result. `settled`: the panels in front have their results.
  void update(Editor& editor, const std::vector<PanelName>& panels, bool settled, const FigureOf& figure_of);
  void cancel() { cancelled_ = active(); }
  // Before the program ends: waits for a folder that is being written. What was not written goes to stderr.
  void shut_down();

  bool busy() const { return active() || next_folder_.has_value(); }
  std::string state() const; // "Weights (3 of 12)"; empty if there is no export
  std::size_t folders_written() const { return folders_written_; }
  // The last folder that was written, and why the last one could not be; both initially empty.
  const std::filesystem::path& written() const { return written_; }
  const std::string& error() const { return error_; }

private:
  bool active() const { return job_ || !panels_.empty(); }
  void begin(Editor& editor, const std::vector<PanelName>& panels, const std::filesystem::path& folder);
  void visit(Editor& editor, bool settled, const FigureOf& figure_of);
  void write(Editor& editor);
  void finish(Editor& editor);

  Display* display_;
  ExportFolder content_;
  bool cancelled_ = false;
  std::optional<std::filesystem::path> next_folder_;
  std::filesystem::path folder_, written_;
  std::size_t folders_written_ = 0;
  std::string error_;
  std::vector<PanelName> panels_;                   // to be visited
  std::size_t next_ = 0;                            // index into panels_
  int frames_ = 0;                                  // since the panel came to the front
  std::string arrangement_;                         // at the begin, to be restored
  std::unique_ptr<BackgroundJob<std::size_t>> job_; // publishes the number of figures at the end
};

} // namespace hydrascope::app
