// A training of the window as the command line that does the same; it goes into the adapter's metadata. Plain
// header.
#pragma once

#include <string>

#include "engine/training/loop/options.h"

namespace hydrascope::app {

// `model` is what --model is to say. Numbers that are the command's own defaults are written, too: defaults
// may change.
std::string training_command(const TrainingRequest& request, const std::string& model);

} // namespace hydrascope::app
