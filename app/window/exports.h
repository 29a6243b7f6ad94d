// Figures on their way into files, on a thread of their own so that no frame waits for them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/state/background_job.h"
#include "app/state/editor.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class Display;

class Exports {
public:
  // The display is woken when a figure has been written; it outlives this.
  explicit Exports(Display& display);

  // Once per frame: takes up what the editor's shell asks to be exported, one figure after another, and says
  // there what has become of it. `figure_of` gives a panel's figure, nullopt if it shows nothing.
  void update(Editor& editor, const std::function<std::optional<Figure>(const std::string&)>& figure_of);
  void cancel();

  bool busy() const { return job_ != nullptr; }
  std::string writing() const;      // name of the file; empty if none is being written
  double seconds(double now) const; // for how long, on the window's clock

private:
  void start(Figure figure, double now);
  void finish(Editor& editor);

  Display* display_;
  std::filesystem::path file_;
  double since_ = 0;
  std::unique_ptr<BackgroundJob<std::filesystem::path>> job_; // finds the file, once it is whole
};

} // namespace hydrascope::app
