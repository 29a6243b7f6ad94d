// How deep JSON may be nested. No file that is read here needs more; each level costs a hundred bytes once
// parsed, so that a file of brackets alone would take all memory, and copying or writing what is nested
// deeply overflows the stack.
#pragma once

#include <string_view>

namespace hydrascope {

inline constexpr int most_json_levels = 100;
inline constexpr const char* nested_too_deep = "is nested more than 100 levels deep"; // for messages

// Whether the text's objects and lists are nested deeper; it need not be valid JSON.
bool is_nested_too_deep(std::string_view text);

// The parsed text, as nlohmann::json or ordered_json; a discarded value if it is no JSON or nested too deep.
template <typename Json>
Json parse_json(std::string_view text) {
  return is_nested_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

} // namespace hydrascope
