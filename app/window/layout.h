// Where the panels are when nobody has moved them.
#pragma once

#include <imgui.h>

namespace hydrascope::app {

// Builds the layout "Explore" of window.md in a dock space of this size. `name` gives the window name of a
// panel's id.
void build_explore_layout(ImGuiID dock_space, ImVec2 size);

// The Dear ImGui window name of a panel: its title may change, its id may not.
inline constexpr const char* window_name_format = "%s###%s";

} // namespace hydrascope::app
