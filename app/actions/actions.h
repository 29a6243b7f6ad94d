// The one table of everything that can be done: menus, palette, shortcuts and the help sheet are made from
// it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/document/editor.h"
#include "app/document/examples.h"
#include "app/document/layouts.h"

namespace hydrascope::app {

struct Availability {
  bool ok = true;
  std::string reason; // why not, shown on the greyed-out entry
};

struct Action {
  std::string id;       // "kernels.all.softmax"; stable, for scripts and tests
  std::string label;    // as menus and the palette show it
  std::string menu;     // "File", "Model/Layer kernel"; empty = palette only
  std::string shortcut; // "Ctrl+O", "?"; empty = none
  std::function<Availability(const Editor&)> enabled;
  std::function<void(Editor&)> run;
  std::function<bool(const Editor&)> checked = {}; // of a choice or a switch: whether it is on
  std::string default_shortcut = {};               // what `shortcut` is without the user's own settings
};

using ActionTable = std::vector<Action>;

// Enabled whatever is open.
Availability always(const Editor& editor);
// Appends an action. The reference is valid until the next one is added.
Action& add(ActionTable& table, std::string id, std::string label, std::string menu, std::string shortcut,
            std::function<void(Editor&)> run, std::function<Availability(const Editor&)> enabled = always);

// The table, in menu order, with the user's shortcuts and layouts in it. Reads the registry, the catalogue
// and the examples folder.
std::vector<Action> make_actions(const std::vector<PanelName>& panels, const Settings& settings = {});

const Action* find_action(const std::vector<Action>& actions, std::string_view id);
// Runs it if it is enabled; otherwise says why not. Returns whether it ran.
bool run_action(const std::vector<Action>& actions, std::string_view id, Editor& editor);

// Every word of `query` occurs in the label or the menu, whatever the case.
bool matches(const Action& action, std::string_view query);

} // namespace hydrascope::app
