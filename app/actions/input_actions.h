// Actions on the input: what was open before, the folder, the clipboard, hidden tokens.
#pragma once

#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

// For the File menu: recent inputs, the folder's pictures …
void add_recent_actions(std::vector<Action>& table, const Settings& settings);
void add_folder_actions(std::vector<Action>& table);
// … and figures as pictures on the clipboard.
void add_copy_actions(std::vector<Action>& table, const std::vector<PanelName>& panels);
// For the Edit menu.
void add_clipboard_actions(std::vector<Action>& table);
void add_token_actions(std::vector<Action>& table);

} // namespace hydrascope::app
