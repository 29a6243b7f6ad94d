#include "engine/models/tokenizer/aligned_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <utf8proc.h>

#include "engine/base/text.h"
#include "engine/models/tokenizer/canonical_order.h"
#include "engine/models/tokenizer/stand_ins.h"

namespace hydrascope {
namespace {

// Marks that Hugging Face's normalization tables (about Unicode 8) do not know: it neither orders nor joins
// them. Found by asking it for every mark of Unicode 14.
struct MarkRange {
  char32_t first, last;
};
constexpr MarkRange unknown_marks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
};

bool is_unknown(char32_t point) {
  return stand_in(point) != point || // newer than Unicode 14
         std::any_of(std::begin(unknown_marks), std::end(unknown_marks),
                     [&](const MarkRange& range) { return point >= range.first && point <= range.last; });
}

// Whether a character may be reordered or joined with one before it. All that are joined are marks or
// Hangul's vowels and final consonants.
bool may_join(char32_t point) {
  if (point < 0x300) return false;
  if (point >= 0x1160 && point <= 0x11FF) return true;
  const utf8proc_property_t& property = *utf8proc_get_property(static_cast<utf8proc_int32_t>(point));
  const bool mark = property.combining_class != 0 || property.category == UTF8PROC_CATEGORY_MN ||
                    property.category == UTF8PROC_CATEGORY_MC;
  return mark && !is_unknown(point);
}

std::string compose(std::string_view part) {
  if (!is_utf8(part)) return std::string(part);
  std::vector<char32_t> points;
  for (std::size_t at = 0; at < part.size();) {
    const CodePoint point = code_point_at(part, at);
    append_decomposed(points, point.value);
    at += point.length;
  }
  order_marks(points);
  std::vector<utf8proc_int32_t> buffer(points.begin(), points.end());
  buffer.push_back(0); // utf8proc writes the text in place, and a byte behind it
  const auto length =
      utf8proc_reencode(buffer.data(), static_cast<utf8proc_ssize_t>(points.size()),
                        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE)); // NOLINT: flags
  if (length < 0) return std::string(part);
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(length)};
}

} // namespace

Utf8Part utf8_part_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {};
  if (first < 0xC2 || first > 0xF4) return {Utf8Part::Kind::broken, 1};
  const std::size_t whole = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < whole; ++i) {
    if (at + i >= bytes.size()) return {Utf8Part::Kind::cut, i};
    // Neither overlong forms, surrogates nor code points beyond U+10FFFF.
    unsigned char low = 0x80, high = 0xBF;
    if (i == 1 && first == 0xE0) low = 0xA0;
    if (i == 1 && first == 0xED) high = 0x9F;
    if (i == 1 && first == 0xF0) low = 0x90;
    if (i == 1 && first == 0xF4) high = 0x8F;
    if (byte(at + i) < low || byte(at + i) > high) return {Utf8Part::Kind::broken, i};
  }
  return {Utf8Part::Kind::character, whole};
}

std::size_t AlignedText::source(std::size_t offset) const {
  const auto next =
      std::upper_bound(changes_.begin(), changes_.end(), offset,
                       [](std::size_t value, const Change& change) { return value < change.begin; });
  if (next == changes_.begin()) return offset;
  const Change& change = *std::prev(next);
  if (offset == change.begin) return change.source_begin;
  return offset < change.end ? change.source_end : offset - change.end + change.source_end;
}

void AlignedText::keep(std::string_view part) {
  text_.append(part);
  source_size_ += part.size();
}

void AlignedText::replace(std::size_t source_bytes, std::string_view result) {
  changes_.push_back({text_.size(), text_.size() + result.size(), source_size_, source_size_ + source_bytes});
  text_.append(result);
  source_size_ += source_bytes;
}

bool is_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Part part = utf8_part_at(bytes, at);
    if (part.kind != Utf8Part::Kind::character) return false;
    at += part.length;
  }
  return true;
}

AlignedText with_replacements(std::string_view bytes) {
  AlignedText result;
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Part part = utf8_part_at(bytes, at);
    if (part.kind == Utf8Part::Kind::character)
      result.keep(bytes.substr(at, part.length));
    else
      result.replace(part.length, "\xEF\xBF\xBD");
    at += part.length;
  }
  return result;
}

AlignedText composed(std::string_view text) {
  AlignedText result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint first = code_point_at(text, at);
    std::size_t end = at + first.length;
    while (end < text.size() && (first.value < 0x300 || !is_unknown(first.value))) {
      const CodePoint next = code_point_at(text, end);
      if (!may_join(next.value)) break;
      end += next.length;
    }
    const std::string_view part = text.substr(at, end - at);
    const bool alone = end == at + first.length && first.value < 0x300;
    const std::string normal = alone ? std::string(part) : compose(part);
    if (normal == part)
      result.keep(part);
    else
      result.replace(part.size(), normal);
    at = end;
  }
  return result;
}

} // namespace hydrascope
