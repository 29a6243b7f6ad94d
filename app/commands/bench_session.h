// What the benchmarks of the window share: the window drawn off screen, and their result.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/shell/application.h"

namespace hydrascope::app {

double milliseconds_since(std::chrono::steady_clock::time_point start);

// {"median", "p95", "max"}; null without values.
nlohmann::ordered_json summary_json(std::vector<double> values);
// One line per entry: a summary's three numbers, or the one number.
void print_result(const nlohmann::ordered_json& result, bool json);

// The window, drawn off screen: its loop, and how to wait for what it shows.
class BenchSession {
public:
  explicit BenchSession(WindowOptions options);

  Application& application() { return application_; }
  const Document& document() { return application_.editor().document(); }
  const SideResults& results() { return application_.coordinator().results(Side::a); }

  // Throws Error if no model could be opened.
  const ModelInfo& model(const char* benchmark);

  // Draws one frame and returns its time. Throws Error if the window shows an error.
  FrameTime timed_frame();
  // One turn of the window's loop without waiting. Its time counts if the model is running or writing.
  void frame();
  const FrameTime& last_frame() const { return last_frame_; }
  // Turns the loop, waiting as the window does, until `done`. Throws Error after five minutes.
  void until(const std::function<bool()>& done);
  // until() draws at most so many frames a second from here on, as a display does (0: as many as it can).
  void limit_frames(double per_second) { most_frames_per_second_ = per_second; }
  void until_settled();

  const std::vector<double>& frames_ms() const { return frame_; }         // while the model ran
  const std::vector<double>& frames_cpu_ms() const { return frame_cpu_; } // … without OpenGL's part
  void forget_frames();

private:
  Application application_;
  double most_frames_per_second_ = 0;
  FrameTime last_frame_;
  std::vector<double> frame_, frame_cpu_;
};

} // namespace hydrascope::app
