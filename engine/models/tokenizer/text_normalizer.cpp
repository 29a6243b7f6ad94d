#include "engine/models/tokenizer/text_normalizer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <utf8proc.h>

#include "engine/models/tokenizer/character_classes.h"

namespace hydrascope {
namespace {

using Points = std::vector<char32_t>;

// The canonical decomposition of one character, without reordering.
void append_decomposed(Points& points, char32_t point) {
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

int combining_class(char32_t point) {
  return point < 0x300 ? 0 : utf8proc_get_property(static_cast<utf8proc_int32_t>(point))->combining_class;
}

// Runs of combining marks in the order of their class (Unicode, canonical ordering).
void order_marks(Points& points) {
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

// Lower case of letters newer than the library's Unicode, which the reference knows.
char32_t lower_of_new_letter(char32_t point) {
  if (point >= 0x10D50 && point <= 0x10D65) return point + 0x20;
  if (point >= 0x16EA0 && point <= 0x16EB8) return point + 0x1B;
  switch (point) {
    case 0x1C89:
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA: return point + 1;
    case 0xA7CB: return 0x264;
    case 0xA7DC: return 0x19B;
    default: return point;
  }
}

void append_lower(Points& points, char32_t point) {
  if (point < 0x80) {
    points.push_back(point >= 'A' && point <= 'Z' ? point + 32 : point);
    return;
  }
  if (point == 0x130) { // the only letter whose lower case is two characters
    points.push_back('i');
    points.push_back(0x307);
    return;
  }
  const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point)));
  points.push_back(lower == point ? lower_of_new_letter(point) : lower);
}

Points decoded(std::string_view text, const NormalizerOptions& options) {
  Points points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.length;
    if (options.clean_text && is_removed(point.value)) continue;
    if (options.clean_text && is_space(point.value)) {
      points.push_back(' ');
    } else if (options.handle_chinese_chars && is_ideograph(point.value)) {
      points.push_back(' ');
      points.push_back(point.value);
      points.push_back(' ');
    } else {
      points.push_back(point.value);
    }
  }
  return points;
}

// What separates words: clean_text has left only spaces, but it can be off.
bool is_white_space(char32_t point) {
  return is_space(point) || point == 0x0B || point == 0x0C || point == 0x85;
}

} // namespace

std::string normalize_text(std::string_view text, const NormalizerOptions& options) {
  Points points = decoded(text, options);
  if (options.strip_accents) {
    Points apart;
    apart.reserve(points.size());
    for (const char32_t point : points) append_decomposed(apart, point);
    order_marks(apart);
    std::erase_if(apart, is_nonspacing);
    points = std::move(apart);
  }
  if (options.lowercase) {
    Points lower;
    lower.reserve(points.size());
    for (const char32_t point : points) append_lower(lower, point);
    points = std::move(lower);
  }
  std::string result;
  result.reserve(text.size());
  for (const char32_t point : points) append_code_point(result, point);
  return result;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t start = 0;
  const auto finish = [&](std::size_t end) {
    if (end > start) words.push_back(text.substr(start, end - start));
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const std::size_t next = at + point.length;
    if (is_white_space(point.value)) {
      finish(at);
      start = next;
    } else if (is_punctuation(point.value)) {
      finish(at);
      words.push_back(text.substr(at, point.length));
      start = next;
    }
    at = next;
  }
  finish(text.size());
  return words;
}

} // namespace hydrascope
