// The built-in layouts: which panels are open in each. app/shell/layout.cpp has their positions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

// A panel's entry in the View menu.
struct PanelName {
  std::string id, title;
  bool exports = false;
};

struct LayoutInfo {
  std::string id, title, shortcut;
  std::vector<std::string> open; // ids of panels; empty: all
};

inline constexpr std::string_view default_layout = "explore";
// The prefix of the user's own layouts, which may have the names of built-in ones.
inline constexpr std::string_view own_layout_prefix = "own:";

const std::vector<LayoutInfo>& layout_infos();

// The closed panels of a built-in or saved layout.
std::set<std::string> closed_in_layout(std::string_view layout, const std::vector<PanelName>& panels,
                                       const Settings& settings);

// Switches to a layout as one undoable step. "compare" also shows A, B and A − B side by side.
void choose_layout(Editor& editor, const std::string& layout, std::set<std::string> closed);

} // namespace hydrascope::app
