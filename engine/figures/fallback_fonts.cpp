#include "engine/figures/fallback_fonts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <fontconfig/fontconfig.h>

namespace hydrascope {
namespace {

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using CharacterSet = std::unique_ptr<FcCharSet, decltype(&FcCharSetDestroy)>;

// One character of each script, or a sign that fonts for text often lack.
constexpr std::array<char32_t, 39> probes = {U'α', U'ж', U'→', U'∑',  U'ₜ',  U'✓',  U'♪',  U'■',  U'א', U'ع',
                                             U'پ', U'ա', U'ა', U'अ',  U'অ',  U'ਅ',  U'અ',  U'ଅ',  U'அ', U'అ',
                                             U'ಅ', U'അ', U'අ', U'ก',  U'ລ',  U'བ',  U'က',  U'ក',  U'አ', U'Ꭰ',
                                             U'ᐁ', U'ᠠ', U'ⴰ', U'ひ', U'语', U'語', U'한', U'ᄒ', U'ㄅ'};

std::optional<FontFile> font_with(char32_t character) {
  const CharacterSet characters(FcCharSetCreate(), &FcCharSetDestroy);
  FcCharSetAddChar(characters.get(), character);
  const Pattern wanted(FcPatternCreate(), &FcPatternDestroy);
  FcPatternAddString(wanted.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>("sans-serif"));
  FcPatternAddCharSet(wanted.get(), FC_CHARSET, characters.get());
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_COLOR, FcFalse);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(nullptr, wanted.get(), &result), &FcPatternDestroy);
  if (!found) return std::nullopt;
  FcCharSet* has = nullptr; // fontconfig answers with the best there is, which may lack the character
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

} // namespace

std::vector<FontFile> find_fallback_fonts() {
  std::vector<FontFile> fonts;
  if (FcInit() == FcFalse) return fonts;
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

} // namespace hydrascope
