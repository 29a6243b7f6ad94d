// Actions on the window itself: layouts, theme, scale, shortcuts, runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

// Appended to the table, for the View menu.
void add_window_actions(std::vector<Action>& table, const std::vector<PanelName>& panels,
                        const Settings& settings);
// … and for the Model and Help menus.
void add_run_actions(std::vector<Action>& table);
// Passes and kernels timed.
void add_measuring_actions(std::vector<Action>& table);
void add_help_actions(std::vector<Action>& table);

// The action, other than `except`, that has this shortcut; null if none.
const Action* action_with_shortcut(const std::vector<Action>& table, std::string_view shortcut,
                                   std::string_view except);
// Gives an action a shortcut ("" = none), and takes it from the one that had it.
void set_shortcut(Editor& editor, const std::vector<Action>& table, std::string_view id,
                  const std::string& shortcut);

// Keeps what each action's shortcut was in `default_shortcut` and puts the user's in its place.
void apply_shortcuts(std::vector<Action>& table, const Settings& settings);

} // namespace hydrascope::app
