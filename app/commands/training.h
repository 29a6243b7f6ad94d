// The options of the commands that train. Plain header.
#pragma once

#include "engine/training/loop/options.h"

namespace CLI {
class App;
}

namespace hydrascope::app {

// Adds the options of the table that this kind of training has, with the values as defaults; the help names
// the defaults that depend on the data. The values must outlive the parse.
void add_training_options(CLI::App& command, TrainingKind kind, OptionValues& values);

} // namespace hydrascope::app
