#include "engine/base/json_depth.h"

#include <cstddef>

namespace hydrascope {

bool is_nested_too_deep(const std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most_json_levels) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

} // namespace hydrascope
