#include "engine/figures/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fontconfig/fontconfig.h>
#include <utf8proc.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/figures/cairo_handles.h"

namespace hydrascope {
namespace {

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using CharacterSet = std::unique_ptr<FcCharSet, decltype(&FcCharSetDestroy)>;

// One character of each script, and symbols that text fonts often lack.
constexpr std::array<char32_t, 39> probes = {U'α', U'ж', U'→', U'∑',  U'ₜ',  U'✓',  U'♪',  U'■',  U'א', U'ع',
                                             U'پ', U'ա', U'ა', U'अ',  U'অ',  U'ਅ',  U'અ',  U'ଅ',  U'அ', U'అ',
                                             U'ಅ', U'അ', U'අ', U'ก',  U'ລ',  U'བ',  U'က',  U'ក',  U'አ', U'Ꭰ',
                                             U'ᐁ', U'ᠠ', U'ⴰ', U'ひ', U'语', U'語', U'한', U'ᄒ', U'ㄅ'};

// Empty for a user of the library without the program's files.
std::filesystem::path packaged_fonts() {
  try {
    return fonts_folder();
  } catch (const Error&) {
    return {};
  }
}

// Whether fontconfig works. The fonts that a package brings are found beside the system's.
bool fonts_ready() {
  static const bool ready = [] {
    if (FcInit() == FcFalse) return false;
    std::error_code failure;
    const std::filesystem::path folder = packaged_fonts();
    if (std::filesystem::is_directory(folder, failure))
      FcConfigAppFontAddDir(nullptr, reinterpret_cast<const FcChar8*>(folder.c_str()));
    return true;
  }();
  return ready;
}

std::optional<FontFile> font_with(char32_t character) {
  const CharacterSet characters(FcCharSetCreate(), &FcCharSetDestroy);
  FcCharSetAddChar(characters.get(), character);
  const Pattern query(FcPatternCreate(), &FcPatternDestroy);
  FcPatternAddString(query.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>("sans-serif"));
  FcPatternAddCharSet(query.get(), FC_CHARSET, characters.get());
  FcPatternAddBool(query.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(query.get(), FC_COLOR, FcFalse);
  FcConfigSubstitute(nullptr, query.get(), FcMatchPattern);
  FcDefaultSubstitute(query.get());
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(nullptr, query.get(), &result), &FcPatternDestroy);
  if (!found) return std::nullopt;
  FcCharSet* has = nullptr; // fontconfig returns the best match, which may lack the character
  if (FcPatternGetCharSet(found.get(), FC_CHARSET, 0, &has) != FcResultMatch ||
      FcCharSetHasChar(has, character) == FcFalse)
    return std::nullopt;
  FcChar8 *file = nullptr, *family = nullptr, *format = nullptr;
  int index = 0;
  if (FcPatternGetString(found.get(), FC_FILE, 0, &file) != FcResultMatch ||
      FcPatternGetString(found.get(), FC_FAMILY, 0, &family) != FcResultMatch ||
      FcPatternGetString(found.get(), FC_FONTFORMAT, 0, &format) != FcResultMatch)
    return std::nullopt;
  const std::string_view kind = reinterpret_cast<const char*>(format);
  if (kind != "TrueType" && kind != "CFF") return std::nullopt;
  FcPatternGetInteger(found.get(), FC_INDEX, 0, &index);
  constexpr int face = 0xffff; // above it fontconfig numbers the instances of a variable font
  return FontFile{reinterpret_cast<const char*>(family), reinterpret_cast<const char*>(file), index & face};
}

// Tried in this order for each character; cairo's toy text interface has no fallback.
constexpr std::array<const char*, 6> text_families{
    "Inter", "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "sans-serif"};
constexpr std::array<const char*, 6> mono_families{"JetBrains Mono",   "DejaVu Sans Mono",  "Noto Sans Mono",
                                                   "Noto Sans CJK SC", "WenQuanYi Zen Hei", "DejaVu Sans"};

const std::array<const char*, 6>& families_of(Face face) {
  return face == Face::mono ? mono_families : text_families;
}

// Whether the font has a glyph for each character of the valid UTF-8 `text`; false without any.
bool can_show(cairo_scaled_font_t* font, std::string_view text) {
  cairo_glyph_t* glyphs = nullptr;
  int count = 0;
  const auto status = cairo_scaled_font_text_to_glyphs(font, 0, 0, text.data(), static_cast<int>(text.size()),
                                                       &glyphs, &count, nullptr, nullptr, nullptr);
  const bool shown = status == CAIRO_STATUS_SUCCESS && count > 0 &&
                     std::all_of(glyphs, glyphs + count, [](const auto& glyph) { return glyph.index != 0; });
  cairo_glyph_free(glyphs);
  return shown;
}

// Bytes of the UTF-8 character at `position`; 1 for a stray byte.
std::size_t character_length(std::string_view text, std::size_t position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  const std::size_t length = lead < 0x80         ? 1
                             : lead >> 5 == 0x6  ? 2
                             : lead >> 4 == 0xe  ? 3
                             : lead >> 3 == 0x1e ? 4
                                                 : 1;
  return std::min(length, text.size() - position);
}

// "U+1F600" of one valid UTF-8 character.
std::string code_point_name(std::string_view character) {
  utf8proc_int32_t code = 0xfffd;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code);
  return fmt::format("U+{:04X}", static_cast<std::uint32_t>(code));
}

void break_word(std::string_view word, const TextStyle& style, double width,
                std::vector<std::string>& lines) {
  for (std::size_t position = 0; position < word.size();) {
    const auto length = character_length(word, position);
    const std::string longer = lines.back() + std::string(word.substr(position, length));
    if (!lines.back().empty() && text_width(longer, style) > width) {
      lines.emplace_back(word.substr(position, length));
    } else {
      lines.back() = longer;
    }
    position += length;
  }
}

void wrap_paragraph(std::string_view text, const TextStyle& style, double width,
                    std::vector<std::string>& lines) {
  lines.emplace_back();
  while (!text.empty()) {
    const auto space = text.find(' ');
    const auto word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
    const std::string longer =
        lines.back().empty() ? std::string(word) : lines.back() + " " + std::string(word);
    if (text_width(longer, style) <= width) {
      lines.back() = longer;
      continue;
    }
    if (!lines.back().empty()) {
      lines.emplace_back();
    }
    break_word(word, style, width, lines);
  }
}

} // namespace

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::string_view piece = text.substr(0, length > 0 ? static_cast<std::size_t>(length) : 1);
    const bool shown = length > 0 && code >= 0x20;
    valid += shown ? std::string(piece) : piece == "\t" ? " " : "\u00b7";
    text.remove_prefix(piece.size());
  }
  return valid;
}

bool has_right_to_left(std::string_view text) {
  const std::string valid = valid_utf8(text);
  for (std::size_t position = 0; position < valid.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(valid.data() + position),
                                         static_cast<utf8proc_ssize_t>(valid.size() - position), &code);
    if (length <= 0) break;
    const auto direction = utf8proc_get_property(code)->bidi_class;
    if (direction == UTF8PROC_BIDI_CLASS_R || direction == UTF8PROC_BIDI_CLASS_AL) return true;
    position += static_cast<std::size_t>(length);
  }
  return false;
}

std::vector<FontFile> find_fallback_fonts() {
  std::vector<FontFile> fonts;
  if (!fonts_ready()) return fonts;
  for (const char32_t probe : probes) {
    std::optional<FontFile> font = font_with(probe);
    if (!font) continue;
    const bool known = std::ranges::any_of(
        fonts, [&](const FontFile& each) { return each.file == font->file && each.index == font->index; });
    if (!known) fonts.push_back(std::move(*font));
  }
  return fonts;
}

const std::vector<FontFile>& fallback_fonts() {
  static const std::vector<FontFile> fonts = find_fallback_fonts();
  return fonts;
}

CairoFontOptions font_options() {
  CairoFontOptions options(cairo_font_options_create());
  cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  return options;
}

CairoFace font_face(const std::string& family, bool bold) {
  fonts_ready();
  return CairoFace(cairo_toy_font_face_create(family.c_str(), CAIRO_FONT_SLANT_NORMAL,
                                              bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL));
}

CairoFont scaled_font(const std::string& family, const TextStyle& style) {
  cairo_matrix_t size, identity;
  cairo_matrix_init_scale(&size, style.size, style.size);
  cairo_matrix_init_identity(&identity);
  return CairoFont(
      cairo_scaled_font_create(font_face(family, style.bold).get(), &size, &identity, font_options().get()));
}

std::vector<TextRun> text_runs(std::string_view text, const TextStyle& style) {
  const std::string valid = valid_utf8(text);
  const auto& families = families_of(style.face);
  std::array<CairoFont, 6> fonts;
  fonts[0] = scaled_font(families[0], style);
  if (can_show(fonts[0].get(), valid)) return {{families[0], valid}}; // most texts, at one call's cost
  const auto family_for = [&](std::string_view character) -> std::string {
    for (std::size_t index = 0; index < families.size(); ++index) {
      if (!fonts[index]) {
        fonts[index] = scaled_font(families[index], style);
      }
      if (can_show(fonts[index].get(), character)) {
        return families[index];
      }
    }
    for (const FontFile& fallback : fallback_fonts()) {
      if (can_show(scaled_font(fallback.family, style).get(), character)) {
        return fallback.family;
      }
    }
    return {};
  };
  std::vector<TextRun> runs;
  for (std::size_t position = 0; position < valid.size();) {
    const auto length = character_length(valid, position);
    auto character = valid.substr(position, length);
    auto family = family_for(character);
    if (family.empty()) {
      character = code_point_name(character);
      family = families.front();
    }
    if (runs.empty() || runs.back().family != family) {
      runs.push_back({family, {}});
    }
    runs.back().text += character;
    position += length;
  }
  return runs;
}

namespace {

double measured_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  for (const auto& run : text_runs(text, style)) {
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(scaled_font(run.family, style).get(), run.text.c_str(), &extents);
    width += extents.x_advance;
  }
  return width;
}

} // namespace

double text_width(std::string_view text, const TextStyle& style) {
  // A view is laid out anew with every result, and most of its labels are those of before: finding the font
  // and asking cairo takes tens of microseconds a label, which the window's frames would pay.
  constexpr std::size_t most = 4096;
  thread_local std::unordered_map<std::string, double> known;
  std::string key(reinterpret_cast<const char*>(&style.size), sizeof style.size);
  key += static_cast<char>('0' + 2 * static_cast<int>(style.face) + (style.bold ? 1 : 0));
  key += text;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() >= most) known.clear();
  return known[std::move(key)] = measured_width(text, style);
}

double ascent(const TextStyle& style) { return 0.78 * style.size; }

double line_height(const TextStyle& style) { return 1.28 * style.size; }

std::string shortened_text(std::string_view text, const TextStyle& style, double width) {
  if (text_width(text, style) <= width) return std::string(text);
  std::vector<std::string_view> characters;
  for (std::size_t position = 0; position < text.size(); position += characters.back().size())
    characters.push_back(text.substr(position, character_length(text, position)));
  std::string shorter = "…";
  for (std::size_t kept = 1; kept < characters.size(); ++kept) {
    std::string longer;
    for (std::size_t index = 0; index < (kept + 1) / 2; ++index) longer += characters[index];
    longer += "…";
    for (std::size_t index = characters.size() - kept / 2; index < characters.size(); ++index)
      longer += characters[index];
    if (text_width(longer, style) > width) break;
    shorter = longer;
  }
  return shorter;
}

std::vector<std::string> wrap_text(std::string_view text, const TextStyle& style, double width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    wrap_paragraph(text.substr(0, end), style, width, lines);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

} // namespace hydrascope
