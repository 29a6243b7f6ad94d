// Actions of the File menu for sessions.
#pragma once

#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

void add_session_actions(std::vector<Action>& table);

} // namespace hydrascope::app
