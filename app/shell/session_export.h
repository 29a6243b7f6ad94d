// A session's figures without a window: what `hydrascope figure --session` does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope::app {

struct SessionExportOptions {
  int width = 1600, height = 1000; // points, of the window that nobody sees: some figures show what it shows
  FigureStyle style;
};

// Opens the session off screen, waits until every open panel has been computed, and writes the folder with
// its index.html. Returns the titles of the open panels that show nothing. Throws Error for a session that
// cannot be opened whole, for a folder that is not empty, and for a run that fails.
std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder,
                                        const SessionExportOptions& options = {});

// Draws a figure that was exported from a window again, off screen, from the session in its own metadata: the
// file's panel once it has been computed. Throws Error as above.
void reproduce_view(const std::filesystem::path& figure, const std::filesystem::path& output,
                    const SessionExportOptions& options = {});

} // namespace hydrascope::app
