// Unicode code points in UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hydrascope {

// The code point that starts at `at`, and its length in bytes (1 to 4). Invalid bytes: U+FFFD of length 1.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;
};
CodePoint code_point_at(std::string_view text, std::size_t at);
void append_code_point(std::string& text, char32_t point);

} // namespace hydrascope
