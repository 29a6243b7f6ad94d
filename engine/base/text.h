// Text helpers: trimming, splitting, numbers and sizes, UTF-8 code points, the nearest known name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// The text without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\n");
// Up to the first line's end: of an error of LibTorch the message without its stack trace.
std::string first_line(std::string_view text);
// The parts between separators, empty ones included: n separators give n + 1 parts.
std::vector<std::string_view> split(std::string_view text, char separator);
// With ASCII letters in lower case; what else there is stays.
std::string lower_case(std::string_view text);
// Whether `part` occurs in the text, ASCII letters in either case.
bool contains_any_case(std::string_view text, std::string_view part);
// The whole text as a decimal number without a sign; nullopt if it is anything else or does not fit an int.
std::optional<int> whole_number(std::string_view text);

// The whole text as a finite decimal number, as 0.25 or -3e2; nullopt if it is anything else.
std::optional<double> decimal_number(std::string_view text);

// "640 MB", "1.3 GB": powers of 1000.
std::string bytes_text(double bytes);

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1; // bytes, 1 to 4
};
// The code point that starts at byte `at`; U+FFFD of length 1 for invalid UTF-8.
CodePoint code_point_at(std::string_view text, std::size_t at);
// The first byte that is not UTF-8; nullopt if all are.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);
// "byte 5 (0xe9) is not UTF-8", counted from 1.
std::string invalid_utf8_text(std::string_view text, std::size_t at);
// The same with the line, "line 3: byte 5 (0xe9) is not UTF-8"; the byte is counted within it.
std::string invalid_utf8_line_text(std::string_view text, std::size_t at);
// Appends the code point to `text` as UTF-8.
void append_code_point(std::string& text, char32_t point);

// The number of single-character insertions, deletions and replacements that make one of the other.
std::size_t edit_distance(std::string_view left, std::string_view right);
// The candidate with the fewest single-character insertions, deletions and replacements (Levenshtein), the
// first of several; empty without candidates.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

} // namespace hydrascope
