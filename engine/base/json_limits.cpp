#include "engine/base/json_limits.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace hydrascope {

const char* why_not_parsed(const std::string_view text, const JsonNames names) {
  // About what nlohmann's values take of memory: in a list or an object, an empty list, an empty object, a
  // name with its node, and a text beside its bytes.
  constexpr std::uint64_t value = 16, list = 40, object = 64, name = 96, string = 48;
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;
  std::array<int, most_json_levels + 1> names_of_level{};
  std::size_t depth = 0;
  std::uint64_t bytes = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      ++bytes;
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        bytes += string;
        break;
      case '{':
      case '[':
        if (++depth > most_json_levels) return "is nested more than 100 levels deep";
        names_of_level[depth] = 0;
        bytes += value + (c == '{' ? object : list);
        break;
      case '}':
      case ']':
        if (depth > 0) --depth;
        break;
      case ':':
        if (++names_of_level[depth] > most_json_names && names == JsonNames::ordered)
          return "has more than 1000 names in one object";
        bytes += name;
        break;
      case ',': bytes += value; break;
      default: break;
    }
    if (bytes > most_bytes) return "would take more than 2 GB of memory";
  }
  return nullptr;
}

} // namespace hydrascope
