// Reading the provenance back out of a figure's file.
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/figures/figure.h"

namespace hydrascope {
namespace {

constexpr std::string_view png_signature("\x89PNG\r\n\x1a\n", 8);

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// The text of the iTXt chunk that with_png_metadata() writes.
std::optional<std::string> of_png(std::string_view bytes) {
  const std::string head = "hydrascope" + std::string(5, '\0');
  for (std::size_t at = png_signature.size(); at + 12 <= bytes.size();) {
    const std::size_t length = big_endian(bytes.substr(at));
    if (length > bytes.size() - at - 12) return std::nullopt;
    const std::string_view data = bytes.substr(at + 8, length);
    if (bytes.substr(at + 4, 4) == "iTXt" && data.starts_with(head))
      return std::string(data.substr(head.size()));
    at += 12 + length;
  }
  return std::nullopt;
}

std::string unescaped_xml(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 4> entities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}}};
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    bool found = false;
    for (const auto& [entity, character] : entities) {
      if (!text.substr(at).starts_with(entity)) continue;
      plain += character;
      at += entity.size();
      found = true;
      break;
    }
    if (!found) plain += text[at++];
  }
  return plain;
}

std::optional<std::string> text_between(std::string_view bytes, std::string_view before,
                                        std::string_view after) {
  const auto start = bytes.find(before);
  if (start == std::string_view::npos) return std::nullopt;
  const auto end = bytes.find(after, start + before.size());
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(bytes.substr(start + before.size(), end - start - before.size()));
}

// <FEFF…>: UTF-16, big endian (PDF 1.7, 7.9.2.2).
std::optional<std::string> pdf_hexadecimal(std::string_view text) {
  std::vector<std::uint32_t> units;
  for (std::size_t at = 0; at + 4 <= text.size(); at += 4) {
    std::uint32_t unit = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, unit, 16);
    if (error != std::errc{} || end != text.data() + at + 4) return std::nullopt;
    units.push_back(unit);
  }
  if (units.empty() || units.front() != 0xfeff) return std::nullopt;
  std::string plain;
  for (std::size_t index = 1; index < units.size(); ++index) {
    std::uint32_t point = units[index];
    if (point >= 0xd800 && point < 0xdc00 && index + 1 < units.size())
      point = 0x10000 + ((point - 0xd800) << 10) + (units[++index] - 0xdc00);
    append_code_point(plain, static_cast<char32_t>(point));
  }
  return plain;
}

// (…): brackets and backslashes escaped, or bytes in octal (PDF 1.7, 7.3.4.2). `text` begins after the
// bracket.
std::optional<std::string> pdf_literal(std::string_view text) {
  std::string plain;
  int depth = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (character == '\\' && at + 1 < text.size()) {
      const char next = text[++at];
      if (next >= '0' && next <= '7') {
        unsigned value = 0;
        std::size_t digits = 0;
        for (; digits < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++digits, ++at)
          value = value * 8 + static_cast<unsigned>(text[at] - '0');
        --at;
        plain += static_cast<char>(value);
      } else {
        plain += next == 'n' ? '\n' : next == 'r' ? '\r' : next == 't' ? '\t' : next;
      }
      continue;
    }
    depth += character == '(' ? 1 : character == ')' ? -1 : 0;
    if (depth == 0) return plain;
    plain += character;
  }
  return std::nullopt;
}

std::optional<std::string> of_pdf(std::string_view bytes) {
  constexpr std::string_view key = "/Keywords";
  const auto start = bytes.rfind(key); // of the last revision
  if (start == std::string_view::npos) return std::nullopt;
  std::string_view rest = bytes.substr(start + key.size());
  const auto value = rest.find_first_not_of(" \r\n\t");
  if (value == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(value);
  if (rest.starts_with('<')) return pdf_hexadecimal(rest.substr(1, rest.find('>') - 1));
  return rest.starts_with('(') ? pdf_literal(rest.substr(1)) : std::nullopt;
}

std::optional<std::string> of_json(std::string_view bytes) {
  const auto document = parse_json<nlohmann::ordered_json>(bytes);
  if (!document.is_object() || !document.contains("provenance")) return std::nullopt;
  return document.at("provenance").dump();
}

std::optional<std::string> first_line_after(std::string_view bytes, std::string_view mark) {
  if (!bytes.starts_with(mark)) return std::nullopt;
  return std::string(bytes.substr(mark.size(), bytes.find('\n') - mark.size()));
}

std::optional<std::string> stored_text(std::string_view bytes) {
  if (bytes.starts_with(png_signature)) return of_png(bytes);
  if (bytes.starts_with("%PDF-")) return of_pdf(bytes);
  if (const auto line = first_line_after(bytes, "# {")) return "{" + *line; // CSV
  if (const auto text = text_between(bytes, "\n% {", "\n"); text && bytes.starts_with("% "))
    return "{" + *text;                                                           // LaTeX
  if (bytes.starts_with("<!-- {")) return text_between(bytes, "<!-- ", " -->\n"); // Markdown
  if (bytes.starts_with('{')) return of_json(bytes);
  const auto metadata = text_between(bytes, "<metadata id=\"hydrascope\">", "</metadata>");
  return metadata ? std::optional(unescaped_xml(*metadata)) : std::nullopt;
}

} // namespace

std::string provenance_of(std::string_view bytes, std::string_view subject) {
  const auto text = stored_text(bytes);
  if (!text || text->empty())
    throw ForeignFile(subject, "does not say where it came from",
                      "give a figure that Hydrascope has written, with its metadata left in");
  const auto parsed = parse_json<nlohmann::ordered_json>(*text); // as its readers do
  if (!parsed.is_object() || !parsed.contains("program") || parsed.at("program") != "hydrascope")
    throw BrokenFile(subject, "its provenance was not written by Hydrascope", "write the figure again");
  return *text;
}

std::string read_provenance(const std::filesystem::path& file) {
  std::string bytes = read_text_file(file);
  if (!bytes.starts_with("\x93NUMPY")) return provenance_of(bytes, file.string());
  const std::filesystem::path beside = file.string() + ".json";
  if (!std::filesystem::exists(beside))
    throw ForeignFile(file.string(),
                      "an array does not store where it came from, and " + beside.string() + " is missing",
                      "keep the two files together");
  return provenance_of(read_text_file(beside), beside.string());
}

} // namespace hydrascope
