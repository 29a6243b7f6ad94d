// What the commands that train show and write: progress, Ctrl-C as a request to stop, curves as CSV. Plain
// header.
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/training/loop/training.h"

namespace hydrascope::app {

// Prints progress: on a terminal one line that is overwritten, otherwise a line every half minute and at the
// end of each epoch. While it exists, SIGINT and SIGTERM request a stop of the training.
class TrainingDisplay {
public:
  TrainingDisplay();
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  TrainingObserver observer();
  std::stop_token stop() const { return source_.get_token(); }

private:
  void show(const TrainingProgress& progress);
  void end_line();

  // Requests the stop after a signal, also while the training waits for another process and reports nothing.
  void watch(const std::stop_token& end);

  std::stop_source source_;
  bool terminal_;
  bool open_line_ = false;
  std::chrono::steady_clock::time_point last_{};
  std::jthread watcher_; // last: it uses the other members
};

// Throws Error if the training was stopped before its end; the message says whether it can go on.
// `subject`: of the error; `output`: the file or folder that it was to write.
void check_not_stopped(const std::string& subject, const TrainingOutcome& outcome,
                       const std::filesystem::path& output);

// Writes the loss of every step, with the header step,loss. Throws Error.
void write_curve(const std::filesystem::path& file, const TrainingOutcome& outcome);

} // namespace hydrascope::app
