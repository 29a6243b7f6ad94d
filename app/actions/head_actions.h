// The part of the action table that is about heads.
#pragma once

#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

void add_head_actions(std::vector<Action>& table);

} // namespace hydrascope::app
