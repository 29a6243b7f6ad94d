// The window, drawn off screen and driven by a benchmark: its loop, and how to wait for what it shows.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/shell/application.h"

namespace hydrascope::app {

// Since the process was started (not since main), in hundredths of a second by the kernel's own books.
double process_age_ms();
double milliseconds_since(std::chrono::steady_clock::time_point start);
// {"median", "p95", "max"}; null where there are no values.
nlohmann::ordered_json summary_json(std::vector<double> values);
// One line for each entry that is a summary, the others as they are.
void print_summaries(const nlohmann::ordered_json& result);

class BenchSession {
public:
  explicit BenchSession(const WindowOptions& options) : application_(options) {}

  Application& application() { return application_; }
  const Document& document() { return application_.editor().document(); }
  const SideResults& results() { return application_.coordinator().results(Side::a); }

  // One turn of the window's loop without its waiting; frames count while the model runs. Throws Error with
  // an error that the window says.
  void frame();
  // Turns the loop, its idle gate included, until it is so. Throws Error after five minutes.
  void until(const std::function<bool()>& done);
  void until_settled();
  // Draws one frame and returns what it took.
  FrameTime timed_frame();

  const std::vector<double>& frames_ms() const { return frame_; }         // while the model ran
  const std::vector<double>& frames_cpu_ms() const { return frame_cpu_; } // … without OpenGL's part

private:
  Application application_;
  std::vector<double> frame_, frame_cpu_;
};

} // namespace hydrascope::app
