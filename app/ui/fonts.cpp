// Which fonts text is written in, and where the letters come from that they lack.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <vector>

#include "app/ui/theme.h"
#include "engine/base/files.h"
#include "engine/figures/text.h"

namespace hydrascope::app::theme {

// The files are mapped, not read: of a font for Chinese only those pages are taken into memory whose letters
// are written.
class FontFiles {
public:
  // Null if it is no font that can be read.
  ImFont* add(const FontFile& font, ImFontConfig config) {
    const std::span<const std::byte> bytes = mapped(font.file);
    if (bytes.empty()) return nullptr;
    config.FontDataOwnedByAtlas = false;
    config.FontNo = static_cast<unsigned int>(font.index);
    // Dear ImGui takes the bytes as its own to free, which it is told not to do, and never writes to them.
    auto* data = const_cast<std::byte*>(bytes.data());
    return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(data, static_cast<int>(bytes.size()), size_text,
                                                      &config);
  }

private:
  std::span<const std::byte> mapped(const std::filesystem::path& path) {
    const auto known = std::ranges::find(files_, path, &Mapped::path);
    if (known != files_.end()) return known->mapping.bytes();
    try {
      files_.push_back({path, FileMapping(path)});
    } catch (const std::exception&) {
      return {}; // the next candidate serves
    }
    return files_.back().mapping.bytes();
  }

  struct Mapped {
    std::filesystem::path path;
    FileMapping mapping;
  };
  std::vector<Mapped> files_;
};

namespace {

// Signs and scripts that a font lacks are taken from the fonts that have them.
void add_fallbacks(ImFont* font, FontFiles& files) {
  ImFontConfig config;
  config.MergeMode = true;
  config.DstFont = font;
  files.add({"Inter", "/usr/share/fonts/opentype/inter/Inter-Regular.otf"}, config);
  for (const FontFile& fallback : fallback_fonts()) files.add(fallback, config);
}

ImFont* load(std::initializer_list<const char*> candidates, FontFiles& files, std::string& note,
             const char* name) {
  for (const char* candidate : candidates) {
    if (ImFont* font = files.add({name, candidate}, {})) {
      add_fallbacks(font, files);
      return font;
    }
  }
  note += std::string(note.empty() ? "font not found: " : ", ") + name;
  ImFontConfig config;
  config.SizePixels = size_text;
  ImFont* font = ImGui::GetIO().Fonts->AddFontDefault(&config);
  add_fallbacks(font, files);
  return font;
}

} // namespace

Fonts load_fonts() {
  Fonts fonts;
  fonts.files = std::make_shared<FontFiles>();
  FontFiles& files = *fonts.files;
  fonts.regular = load({"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                        "/usr/share/fonts/truetype/inter/Inter-Regular.ttf",
                        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"},
                       files, fonts.note, "Inter");
  fonts.strong = load({"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                       "/usr/share/fonts/truetype/inter/Inter-SemiBold.ttf",
                       "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"},
                      files, fonts.note, "Inter SemiBold");
  fonts.mono = load({"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf",
                     "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"},
                    files, fonts.note, "JetBrains Mono");
  return fonts;
}

} // namespace hydrascope::app::theme
