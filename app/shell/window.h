// Entry points: the window of `hydrascope [FILE…]`, and what is drawn off screen.
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

class SessionStore;

struct WindowOptions {
  std::vector<std::filesystem::path>
      files;                        // pictures, text files, sessions, model folders; opened in this order
  std::string text;                 // a sentence to open
  CommonOptions common;             // model, adapters, schedule, execution
  std::filesystem::path screenshot; // if not empty: write the settled window here and exit
  std::vector<std::string> actions; // run before the screenshot, each in the settled window
  std::filesystem::path recording;  // if not empty: write an animated WebP of `script` here and exit
  std::filesystem::path script;     // a step on each line (docs/figures.md)
  std::filesystem::path socket;     // if not empty: take captures from other programs there
  bool hidden = false;              // draw off screen
  int width = 1600, height = 1000;  // points; a hidden window has `scale` pixels per point
  std::optional<double> scale;      // of a hidden window, which has no settings
  ThemeChoice theme = ThemeChoice::dark; // of a hidden window
  std::filesystem::path settings_file;   // empty: the user's own, none for a hidden window
  // Opens what a figure of the command line shows (app/commands/figure/show_figure.h).
  std::function<void(Editor&, const ShowFigure&)> show_figure;
};

// Runs until the window is closed, or the screenshot or recording is written. Returns the exit status. Throws
// Error if neither a window nor an off-screen context can be created, or if a file in the options cannot be
// opened for a screenshot.
int run_window(const WindowOptions& options);

// Writes the settled window to options.screenshot after options.actions. Throws Error if a file cannot be
// opened or there is nothing to show, UsageError for an unknown action.
void write_screenshot(const WindowOptions& options);

// Performs the lines of options.script and writes what the window shows meanwhile to options.recording, an
// animated WebP. Throws as write_screenshot does; then no file is written. UsageError names the script's
// line.
void write_recording(const WindowOptions& options);

// Sets the initial document, where undo begins: the files, text and options; without any of them the last
// session if the user wants it, else an example picture. Reports what cannot be opened as messages. Throws
// UsageError for a schedule that does not fit the model.
void start_document(Editor& editor, SessionStore& sessions, const WindowOptions& options);

// The program's, LibTorch's, the processor's and the GPU's, for --version. Loads CUDA.
std::string version_text();

} // namespace hydrascope::app
