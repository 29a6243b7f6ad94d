// How the action table is built: one function for each menu.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

using ActionTable = std::vector<Action>;

inline Availability always(const Editor&) { return {}; }
Availability with_model(const Editor& editor); // needs an open model
Availability pictures_can_be_copied(const Editor& editor);

// Appends an action and returns it.
Action& add_action(ActionTable& table, std::string id, std::string label, std::string menu,
                   std::string shortcut, std::function<void(Editor&)> run,
                   std::function<Availability(const Editor&)> enabled = always);

void add_file_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings);
void add_edit_actions(ActionTable& table);
void add_preference_actions(ActionTable& table); // of the Edit menu, too
void add_view_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings);
void add_model_actions(ActionTable& table, const DeviceList* devices);

} // namespace hydrascope::app
