// All open panels' figures at once: each panel comes to the front until it has what it asks for, then a
// thread writes the folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/actions/actions.h"
#include "app/jobs/background_job.h"
#include "app/shell/export_folder.h"

namespace hydrascope::app {

class Display;

class EverythingExport {
public:
  // The display is woken when the folder has been written; it outlives this.
  explicit EverythingExport(Display& display);

  // Into this folder, after one that is being written.
  void start(std::filesystem::path folder) { next_folder_ = std::move(folder); }
  // Once per frame: goes on, and says what has become of it. `settled`: the panels in front have what they
  // asked for.
  void update(Editor& editor, const std::vector<PanelName>& panels, bool settled,
              const std::function<std::optional<Figure>(const std::string&)>& figure_of);
  void cancel() { cancelled_ = goes_on(); }
  void set_style(const FigureStyle& style) { style_ = style; }
  bool busy() const { return goes_on() || next_folder_.has_value(); }
  std::string state() const; // "Weights (3 of 12)"; empty if nothing goes on
  // The folder that was written last, and what kept it from being written; both empty before the first.
  const std::filesystem::path& written() const { return written_; }
  const std::string& error() const { return error_; }
  // Titles of the open panels that showed nothing, then.
  const std::vector<std::string>& empty() const { return empty_; }

private:
  bool goes_on() const { return job_ || !panels_.empty(); }
  void begin(Editor& editor, const std::vector<PanelName>& panels, const std::filesystem::path& folder);
  void visit(Editor& editor, bool settled,
             const std::function<std::optional<Figure>(const std::string&)>& figure_of);
  void write(Editor& editor);
  void finish(Editor& editor);

  Display* display_;
  FigureStyle style_;
  ExportFolder content_;
  std::vector<std::string> empty_;
  bool cancelled_ = false;
  std::optional<std::filesystem::path> next_folder_;
  std::filesystem::path folder_, written_;
  std::string error_;
  std::vector<PanelName> panels_;                   // to be visited
  std::size_t next_ = 0;                            // of panels_
  int frames_ = 0;                                  // since it came to the front
  std::string arrangement_;                         // before all that
  std::unique_ptr<BackgroundJob<std::size_t>> job_; // finds the number of figures, once all are written
};

} // namespace hydrascope::app
