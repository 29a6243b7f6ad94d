// The result of `hydrascope run` as tensors, JSON and text. Plain header.
#pragma once

#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/array.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The tensors that --tensors may name, in the order of the help.
const std::vector<std::string>& run_tensor_names();

// A comma list of them. Throws UsageError listing the known names.
std::set<std::string> parse_run_tensors(std::string_view list);

// The result's tensors by their names in the file ("attention.0", …). `head`: attention of this head alone.
// `notes` gets a line for each tensor asked for that the model does not have, and one where rollout fuses all
// heads in place of the chosen one.
std::vector<NamedArray> run_tensors(const RunResult& result, const std::set<std::string>& asked,
                                    std::optional<int> head, std::vector<std::string>& notes);

// The JSON document of docs/command-line.md: predictions (the first five), tokens, seconds, layers, adapters,
// notes, ….
nlohmann::ordered_json run_json(const RunResult& result);

// The same as text.
void print_run(std::ostream& out, const RunResult& result);

} // namespace hydrascope::app
