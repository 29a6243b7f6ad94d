// The action table: everything a user can do. Menus, palette, shortcuts and the help sheet are made from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/editor.h"
#include "app/document/layouts.h"

namespace hydrascope::app {

struct Availability {
  bool ok = true;
  std::string reason; // why not, for the tooltip of the disabled entry
};

struct Action {
  std::string id;       // "kernels.all.softmax"; stable, for scripts and tests
  std::string label;    // as in menus and the palette
  std::string menu;     // "File", "Model/Layer kernel"; empty: palette only
  std::string shortcut; // "Ctrl+O", "?"; empty: none
  std::function<Availability(const Editor&)> enabled;
  std::function<void(Editor&)> run;
  std::function<bool(const Editor&)> checked = {}; // whether an option is on; empty for plain actions
  std::string default_shortcut = {};               // `shortcut` without the user's settings
  bool begins_group = false;                       // the menu has a line above it, or above its submenu
  std::string tip = {};                            // what the label leaves open, for a tooltip
};

// Builds the table in menu order, with the user's shortcuts and layouts and the devices, null while they are
// looked for. Reads the kernel registry, the model catalogue and the examples folder.
std::vector<Action> make_actions(const std::vector<PanelName>& panels, const Settings& settings = {},
                                 const DeviceList* devices = nullptr);

const Action* find_action(const std::vector<Action>& actions, std::string_view id); // null if there is none

// Runs an enabled action; for a disabled one adds a message with the reason. Returns whether it ran.
bool run_action(const std::vector<Action>& actions, std::string_view id, Editor& editor);

// Whether every word of `query` occurs in the label or the menu, ignoring case.
bool matches(const Action& action, std::string_view query);

// The action other than `except` with this shortcut; null if there is none.
const Action* action_with_shortcut(const std::vector<Action>& table, std::string_view shortcut,
                                   std::string_view except);
// Assigns a shortcut ("" = none) and removes it from the action that had it.
void set_shortcut(Editor& editor, const std::vector<Action>& table, std::string_view id,
                  const std::string& shortcut);

// Why a training cannot be started, or resumed, now; empty if it can. `found`: the output has a checkpoint.
std::string why_not_started(const Editor& editor);
std::string why_not_resumed(const Editor& editor, bool found);

} // namespace hydrascope::app
