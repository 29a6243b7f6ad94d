// The window as the program starts it: `hydrascope [FILE…]`.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/document/common_options.h"
#include "app/document/editor.h"
#include "app/document/settings.h"

namespace hydrascope::app {

struct WindowOptions {
  std::vector<std::filesystem::path> files; // pictures, text files, model folders; opened in this order
  std::string text;                         // a sentence to start with
  CommonOptions common;                     // model, adapters, schedule, execution
  std::filesystem::path screenshot;         // write the settled window here and leave
  std::vector<std::string> actions;         // run before the screenshot, each when the last has settled
  bool hidden = false;                      // draw off screen
  int width = 1600, height = 1000; // points; what a hidden window has in pixels is `scale` times as much
  std::optional<double> scale;     // of a hidden window, which has no settings
  ThemeChoice theme = ThemeChoice::dark; // of a hidden window
  std::filesystem::path settings_file;   // empty: the user's own; a hidden window then has none
  // Opens what a figure of the command line shows (app/commands/figure/show_figure.h).
  std::function<void(Editor&, const ShowFigure&)> show_figure;
};

// Runs until the window is closed (or the screenshot is written). Returns the exit status. Throws Error if
// neither a window nor an off-screen context can be had, or if a file named in the options cannot be opened
// for a screenshot.
int run_window(const WindowOptions& options);

} // namespace hydrascope::app
