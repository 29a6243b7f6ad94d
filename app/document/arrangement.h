// The arrangement of the panels, a text in Dear ImGui's format, as a session or the settings hold it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hydrascope::app {

// What Dear ImGui may restore of the text: windows, and the tree of nodes that they are docked in. Windows in
// nodes that are not there are no longer docked. Nullopt if the tree is none: Dear ImGui, which checks
// nothing of that, would hang or end the program.
std::optional<std::string> sound_arrangement(std::string_view text);

} // namespace hydrascope::app
