// The layouts that come with the program: which panels are open in each. Where they stand is the window's
// matter (app/shell/layout.cpp).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

// What a panel adds to the View menu.
struct PanelName {
  std::string id, title;
  bool exports = false;
};

struct LayoutInfo {
  std::string id, title, shortcut;
  std::vector<std::string> open; // panels' ids; empty: all panels
};

inline constexpr std::string_view default_layout = "explore";
// A layout of the user's own is chosen by its name after this prefix, so that it may be called "explore" too.
inline constexpr std::string_view own_layout_prefix = "own:";

const std::vector<LayoutInfo>& layout_infos();

// The panels that are closed in a layout: of `panels` those that it does not open, or what was saved.
std::set<std::string> closed_in_layout(std::string_view layout, const std::vector<PanelName>& panels,
                                       const Settings& settings);

// Goes over to a layout, with its panels open: one undoable step. "compare" shows A, B and A − B side by
// side.
void choose_layout(Editor& editor, const std::string& layout, std::set<std::string> closed);

} // namespace hydrascope::app
