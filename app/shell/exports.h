// Figures on their way into files, on a thread of their own so that no frame waits for them.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class Display;

class Exports {
public:
  // The display is woken when a figure has been written; it outlives this.
  explicit Exports(Display& display);

  // Writes a figure after those that wait; nullopt, of a panel that shows nothing, is told.
  void write(std::optional<Figure> figure, std::filesystem::path file, Editor& editor);
  // Once per frame: says what has been written, and begins with the next.
  void update(Editor& editor);
  void cancel(); // the one that is being written

  bool busy() const { return job_ != nullptr; }
  std::string writing() const;      // name of the file; empty if none is being written
  double seconds(double now) const; // for how long, on the window's clock

private:
  void start(double now);
  void finish(Editor& editor);

  struct Waiting {
    Figure figure;
    std::filesystem::path file;
  };

  Display* display_;
  std::deque<Waiting> waiting_;
  std::filesystem::path file_;
  double since_ = 0;
  std::unique_ptr<BackgroundJob<std::filesystem::path>> job_; // finds the file, once it is whole
};

} // namespace hydrascope::app
