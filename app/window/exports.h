// Figures on their way into files, on a thread of their own so that no frame waits for them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/state/editor.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

class Display;

class Exports {
public:
  // The display is woken when a figure has been written; it outlives this.
  explicit Exports(Display& display);
  ~Exports(); // stops what is being written
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // One at a time: ask busy() first.
  void start(Figure figure, std::filesystem::path file, double now);
  void cancel();
  // Says in the editor what has become of it.
  void poll(Editor& editor);

  bool busy() const { return job_ != nullptr; }
  double since() const { return since_; } // of the window's clock
  const std::filesystem::path& file() const { return file_; }

private:
  struct Job;
  Display* display_;
  std::filesystem::path file_;
  double since_ = 0;
  std::unique_ptr<Job> job_;
};

} // namespace hydrascope::app
