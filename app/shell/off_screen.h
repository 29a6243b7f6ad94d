// The window drawn off screen into files: a screenshot, or a recording of a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/shell/window.h"

namespace hydrascope::app {

// Writes the settled window to options.screenshot after options.actions. Throws Error if a file cannot be
// opened or there is nothing to show, UsageError for an unknown action.
void write_screenshot(const WindowOptions& options);

// A line of a script: a verb and what follows it.
struct ScriptLine {
  int number = 0; // in the file, from 1
  std::string verb, rest;
};
// Leaves out empty lines and those that begin with #. Throws UsageError with `file` and line for an unknown
// verb, and for a verb without the argument that it needs.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file);

// Performs the lines of options.script and writes what the window shows meanwhile to options.recording, an
// animated WebP. Throws as write_screenshot does; then no file is written.
void write_recording(const WindowOptions& options);

} // namespace hydrascope::app
