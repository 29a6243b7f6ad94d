// What can be done with a training.
#pragma once

#include <vector>

#include "app/actions/actions.h"

namespace hydrascope::app {

void add_training_actions(std::vector<Action>& table);

// Why no training can be started now; empty if one can.
std::string why_not_started(const Editor& editor);
// Why none can be resumed; `found`: there is a checkpoint beside the output.
std::string why_not_resumed(const Editor& editor, bool found);

} // namespace hydrascope::app
