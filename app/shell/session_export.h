// A session's figures without a window or a display: what `hydrascope figure --session` does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope::app {

// Opens the session, computes every open panel, and writes the folder with its index.html. Returns the titles
// of the open panels that show nothing. Throws Error for a session that cannot be opened whole, for a folder
// that is not empty, and where no open panel shows anything.
std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder, const FigureStyle& style = {});

// Draws a figure that was exported from a window again, from the session and with the look in its own
// metadata. Throws Error as above.
void reproduce_view(const std::filesystem::path& figure, const std::filesystem::path& output);

} // namespace hydrascope::app
