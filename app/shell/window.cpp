#include "app/shell/window.h"

#include "app/shell/application.h"

namespace hydrascope::app {

int run_window(const WindowOptions& options) {
  if (!options.screenshot.empty() || !options.recording.empty()) {
    if (!options.screenshot.empty()) write_screenshot(options);
    if (!options.recording.empty()) write_recording(options);
    return 0;
  }
  Application application(options);
  while (application.running()) {
    // Waits for input or results.
    constexpr double long_time = 60;
    if (application.wait(long_time)) application.frame();
  }
  return 0;
}

} // namespace hydrascope::app
