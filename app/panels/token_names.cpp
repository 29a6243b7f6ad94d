#include "app/panels/token_names.h"

#include <fmt/format.h>

namespace hydrascope::app {

std::string plain_piece(const std::string& piece) {
  return piece.starts_with("##") && piece.size() > 2 ? piece.substr(2) : piece;
}

std::string token_name(const RunResult& run, std::int64_t token) {
  if (run.rows > 0) {
    if (token == 0 && run.prefix_tokens > 0) return "class token";
    if (token < run.prefix_tokens) return "distillation token";
    // As in the files that a run writes: rows and columns from 1.
    const std::int64_t patch = token - run.prefix_tokens;
    return fmt::format("row {}, column {}", patch / run.columns + 1, patch % run.columns + 1);
  }
  if (token < 0 || static_cast<std::size_t>(token) >= run.tokens.size())
    return fmt::format("token {}", token);
  return fmt::format("“{}”", run.tokens[static_cast<std::size_t>(token)].text);
}

std::string query_name(const RunResult& run) {
  return run.query ? token_name(run, *run.query) : "all tokens";
}

} // namespace hydrascope::app
