#include "engine/base/code_points.h"

#include <array>

#include <utf8proc.h>

namespace hydrascope {

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  utf8proc_int32_t point = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &point);
  if (length < 1) return {0xFFFD, 1};
  return {static_cast<char32_t>(point), static_cast<std::size_t>(length)};
}

void append_code_point(std::string& text, char32_t point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
    return;
  }
  std::array<utf8proc_uint8_t, 4> buffer{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), buffer.data());
  text.append(reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(length));
}

} // namespace hydrascope
