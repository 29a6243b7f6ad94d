#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <utf8proc.h>

namespace hydrascope {

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string first_line(const std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const std::string digits(text);
  const char* const end = digits.c_str() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.c_str(), end, value);
  if (failure != std::errc() || stop != end || value < 0 || text.front() == '-') return std::nullopt;
  return value;
}

bool contains_any_case(std::string_view text, std::string_view part) {
  return lower_case(text).find(lower_case(part)) != std::string::npos;
}

std::optional<double> decimal_number(std::string_view text) {
  double value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc() || stop != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6) : fmt::format("{:.1f} GB", bytes / 1e9);
}

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  utf8proc_int32_t point = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &point);
  if (length < 1) return {0xFFFD, 1};
  return {static_cast<char32_t>(point), static_cast<std::size_t>(length)};
}

std::optional<std::size_t> first_invalid_utf8(const std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == 0xFFFD && point.length == 1) return at;
    at += point.length;
  }
  return std::nullopt;
}

std::string invalid_utf8_text(const std::string_view text, const std::size_t at) {
  return fmt::format("byte {} (0x{:02x}) is not UTF-8", at + 1, static_cast<unsigned char>(text[at]));
}

std::string invalid_utf8_line_text(const std::string_view text, const std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t begin = before.rfind('\n') + 1; // 0 in the first line: npos + 1
  return fmt::format("line {}: {}", std::ranges::count(before, '\n') + 1,
                     invalid_utf8_text(text.substr(begin), at - begin));
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

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  const auto nearest = std::ranges::min_element(
      candidates, {}, [&](const std::string& candidate) { return edit_distance(name, candidate); });
  return nearest == candidates.end() ? std::string() : *nearest;
}

} // namespace hydrascope
