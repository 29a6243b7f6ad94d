// The known name that a mistyped one most likely meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// The candidate with the fewest single-character insertions, deletions and replacements (Levenshtein), the
// first of several; empty without candidates.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

} // namespace hydrascope
