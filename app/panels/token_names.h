// How tokens are called in the panels.
#pragma once

#include <string>

#include "engine/run/run.h"

namespace hydrascope::app {

// "class token", "row 3, column 4" (from 1), "“mice”"; `token` may lie outside (then its number).
std::string token_name(const RunResult& run, std::int64_t token);
// Which query a result was made for, in words: "class token", "all tokens".
std::string query_name(const RunResult& run);
// A word piece as it is read: without "##".
std::string plain_piece(const std::string& piece);

} // namespace hydrascope::app
