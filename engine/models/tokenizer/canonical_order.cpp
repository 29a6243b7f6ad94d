#include "engine/models/tokenizer/canonical_order.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <utf8proc.h>

namespace hydrascope {
namespace {

int combining_class(char32_t point) {
  return point < 0x300 ? 0 : utf8proc_get_property(static_cast<utf8proc_int32_t>(point))->combining_class;
}

} // namespace

void append_decomposed(std::vector<char32_t>& points, char32_t point) {
  // The reference's tables are older than this letter's decomposition.
  constexpr char32_t dives_akuru_o = 0x11938;
  if (point < 0xC0 || point == dives_akuru_o) {
    points.push_back(point);
    return;
  }
  std::array<utf8proc_int32_t, 32> buffer{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(point), buffer.data(), buffer.size(),
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(buffer.size())) {
    points.push_back(point);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    points.push_back(static_cast<char32_t>(buffer[static_cast<std::size_t>(i)]));
}

void order_marks(std::vector<char32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [](char32_t p) { return combining_class(p) == 0; });
    std::stable_sort(begin, end,
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

} // namespace hydrascope
