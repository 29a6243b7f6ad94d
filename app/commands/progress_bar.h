// Progress of long work on standard error, shown only where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hydrascope::app {

// "[####................] 40/200".
std::string progress_text(std::int64_t done, std::int64_t total);

// One line that is written over, and wiped when the work ends.
class ProgressBar {
public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::int64_t done, std::int64_t total);

private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

} // namespace hydrascope::app
