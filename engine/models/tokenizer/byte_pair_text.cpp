// From token ids back to text.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "engine/base/text.h"
#include "engine/models/tokenizer/aligned_text.h"
#include "engine/models/tokenizer/byte_pair.h"

namespace hydrascope {
namespace {

const char* const replacement = "\xEF\xBF\xBD"; // U+FFFD

// Whether fonts have something to draw for it: no control, format, private, unassigned or separating
// characters.
bool has_glyph(char32_t point) {
  if (point == ' ') return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(point));
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

std::string shown(std::string_view character) {
  if (character == "\n") return "\\n";
  if (character == "\r") return "\\r";
  if (character == "\t") return "\\t";
  const char32_t point = code_point_at(character, 0).value;
  return has_glyph(point) ? std::string(character)
                          : fmt::format("<U+{:04X}>", static_cast<std::uint32_t>(point));
}

} // namespace

std::string BytePair::token(int id) const {
  if (id < 0 || id > largest_id()) return fmt::format("<unused {}>", id);
  const std::string& bytes = settings_.vocabulary[static_cast<std::size_t>(id)].bytes;
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Part part = utf8_part_at(bytes, at);
    if (part.kind == Utf8Part::Kind::character) {
      text += shown(std::string_view(bytes).substr(at, part.length));
    } else {
      for (std::size_t i = 0; i < part.length; ++i)
        fmt::format_to(std::back_inserter(text), "<0x{:02X}>", static_cast<unsigned char>(bytes[at + i]));
    }
    at += part.length;
  }
  return text;
}

std::string TextStream::put(int id) {
  if (!special_ && tokenizer_->special(id)) return {};
  pending_ += tokenizer_->bytes(id);
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Part part = utf8_part_at(pending_, at);
    if (part.kind == Utf8Part::Kind::cut) break;
    if (part.kind == Utf8Part::Kind::character)
      text.append(pending_, at, part.length);
    else
      text += replacement;
    at += part.length;
  }
  pending_.erase(0, at);
  return text;
}

std::string TextStream::finish() {
  const bool left = !pending_.empty(); // one character's beginning, hence one U+FFFD
  pending_.clear();
  return left ? replacement : "";
}

} // namespace hydrascope
