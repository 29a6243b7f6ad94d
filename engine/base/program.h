// Other programs: finding one and running it.
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// The executable of this name in the folders of PATH; empty if there is none.
std::filesystem::path find_program(std::string_view name);

struct ProgramResult {
  int status = 0;     // of the exit; 128 + N if signal N ended it
  std::string output; // all of its standard output
  std::string errors; // all of its standard error
};

// Runs `command`, whose first word is searched for in PATH, with `input` on its standard input, and returns
// when it has exited; processes that it leaves in the background go on. It inherits no other open file.
// Throws Error if it cannot be started, or if it has not exited within `limit` and was killed; throws
// Cancelled, after killing it, if a stop is requested.
ProgramResult run_program(const std::vector<std::string>& command, std::string_view input,
                          std::chrono::milliseconds limit, const std::stop_token& stop);

} // namespace hydrascope
