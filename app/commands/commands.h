// The one list of subcommands, in the order of `--help`.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace hydrascope::app {

// `command_line`: the whole command as typed, for those that write it into a file's metadata.
void add_commands(CLI::App& program, const std::string& command_line);

} // namespace hydrascope::app
