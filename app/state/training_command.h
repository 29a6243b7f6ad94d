// A training of the window as the command line that does the same; it goes into the adapter's metadata. Plain
// header.
#pragma once

#include <string>

#include "engine/training/training.h"

namespace hydrascope::app {

// `model` is what --model is to say. Numbers that are the command's own defaults are written, too: defaults
// may change.
std::string training_command(const DistillRequest& request, const std::string& model);
std::string training_command(const FinetuneRequest& request, const std::string& model);

} // namespace hydrascope::app
