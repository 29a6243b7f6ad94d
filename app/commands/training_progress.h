// What the training commands share: progress on standard error, Ctrl-C as a request to stop, curves as CSV.
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/training/loop/training.h"

namespace hydrascope::app {

// Prints progress: one line that is written over where standard error is a terminal, otherwise a line every
// half minute and at the end of each epoch. While it lives, SIGINT and SIGTERM ask the training to stop.
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

  // Hands a signal on: also while the training waits for another process, or tells nothing.
  void watch(const std::stop_token& end);

  std::stop_source source_;
  bool terminal_;
  bool open_line_ = false;
  std::chrono::steady_clock::time_point last_{};
  std::jthread watcher_; // the last member: it uses the others
};

// One line for people: "epoch 2/5  train 120/176  loss 1.234 …".
std::string progress_text(const TrainingProgress& progress);

// step,loss with a header line. Throws Error.
void write_curve(const std::filesystem::path& file, const TrainingOutcome& outcome);

// The outcome as JSON, on standard output, or in words; throws Error where it was stopped before its end.
void print_outcome(const TrainingOutcome& outcome, bool json);

} // namespace hydrascope::app
