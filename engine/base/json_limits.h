// What JSON from elsewhere may hold. No file that is read here needs more. Each level costs a hundred bytes
// once parsed, so that a file of brackets alone would take all memory, and copying or writing what is nested
// deeply overflows the stack. nlohmann's ordered_json compares each name of an object with all before it: a
// vocabulary took a minute.
#pragma once

#include <string_view>

namespace hydrascope {

inline constexpr int most_json_levels = 100;
inline constexpr int most_json_names = 1000; // of an object that keeps their order

// How objects are parsed: nlohmann::json sorts their names, ordered_json keeps their order.
enum class JsonNames { sorted, ordered };

// Why the text is not parsed, for messages, as in "is nested more than 100 levels deep"; null if it may be.
// It need not be valid JSON.
const char* why_not_parsed(std::string_view text, JsonNames names = JsonNames::sorted);

// The parsed text, as nlohmann::json or ordered_json; a discarded value if it is no JSON or holds too much.
template <typename Json>
Json parse_json(std::string_view text) {
  constexpr bool sorted = requires(typename Json::object_t & object) { object.key_comp(); }; // a std::map
  return why_not_parsed(text, sorted ? JsonNames::sorted : JsonNames::ordered) != nullptr
             ? Json(Json::value_t::discarded)
             : Json::parse(text, nullptr, false);
}

} // namespace hydrascope
