#include "app/ui/theme.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/figures/text.h"

namespace hydrascope::app::theme {

namespace {

// In the order of the roles. Text, accent, amber and red have a contrast of at least 4.5 on panels, controls
// and popups of their theme (tests/window/appearance_tests.cpp).
constexpr Palette dark = {{{0.055f, 0.059f, 0.067f, 1},
                           {0.078f, 0.082f, 0.094f, 1},
                           {0.118f, 0.125f, 0.141f, 1},
                           {0.165f, 0.173f, 0.196f, 1},
                           {0.098f, 0.104f, 0.120f, 1},
                           {0.157f, 0.165f, 0.188f, 1},
                           {0.875f, 0.886f, 0.906f, 1},
                           {0.565f, 0.588f, 0.631f, 1},
                           {0.350f, 0.370f, 0.410f, 1},
                           {0.310f, 0.620f, 0.930f, 1},
                           {0.930f, 0.690f, 0.260f, 1},
                           {0.940f, 0.380f, 0.350f, 1},
                           {0.550f, 0.660f, 0.780f, 1},
                           {0.400f, 0.440f, 0.500f, 1}}};

constexpr Palette light = {{{0.875f, 0.886f, 0.902f, 1},
                            {0.980f, 0.982f, 0.986f, 1},
                            {0.890f, 0.900f, 0.914f, 1},
                            {0.820f, 0.833f, 0.855f, 1},
                            {0.996f, 0.997f, 1.000f, 1},
                            {0.780f, 0.793f, 0.820f, 1},
                            {0.098f, 0.110f, 0.133f, 1},
                            {0.349f, 0.373f, 0.420f, 1},
                            {0.620f, 0.640f, 0.675f, 1},
                            {0.043f, 0.384f, 0.741f, 1},
                            {0.549f, 0.337f, 0.000f, 1},
                            {0.737f, 0.118f, 0.110f, 1},
                            {0.345f, 0.478f, 0.627f, 1},
                            {0.470f, 0.505f, 0.560f, 1}}};

void set_spacing(ImGuiStyle& style) {
  style.FontSizeBase = size_text;
  style.WindowPadding = {grid, grid};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {6, 4};
  style.CellPadding = {6, 3};
  style.ScrollbarSize = 10;
  style.GrabMinSize = 10;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 0;
  style.TabBorderSize = 0;
  style.TabBarBorderSize = 0;
  style.TabBarOverlineSize = 2;
  style.TabCloseButtonMinWidthSelected = 0;
  style.TabCloseButtonMinWidthUnselected = 0;
  style.DockingSeparatorSize = 4;
  style.WindowRounding = style.PopupRounding = 4;
  style.FrameRounding = style.GrabRounding = style.TabRounding = style.ScrollbarRounding = 3;
  style.SeparatorTextBorderSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;
}

void set_colours(ImGuiStyle& style, Mode mode) {
  if (mode == Mode::dark) {
    ImGui::StyleColorsDark(&style); // for entries missing from the table below
  } else {
    ImGui::StyleColorsLight(&style);
  }
  const ImVec4 chosen = accent;
  const ImVec4 selection{chosen.x, chosen.y, chosen.z, mode == Mode::dark ? 0.28f : 0.22f};
  const ImVec4 grab{chosen.x, chosen.y, chosen.z, 0.55f};
  const ImVec4 none{0, 0, 0, 0};
  const std::initializer_list<std::pair<ImGuiCol, ImVec4>> table = {
      {ImGuiCol_Text, text},
      {ImGuiCol_TextDisabled, quiet},
      {ImGuiCol_WindowBg, surface},
      {ImGuiCol_ChildBg, none},
      {ImGuiCol_PopupBg, popup},
      {ImGuiCol_Border, line},
      {ImGuiCol_FrameBg, raised},
      {ImGuiCol_FrameBgHovered, raised_more},
      {ImGuiCol_FrameBgActive, raised_more},
      {ImGuiCol_TitleBg, ground},
      {ImGuiCol_TitleBgActive, ground},
      {ImGuiCol_TitleBgCollapsed, ground},
      {ImGuiCol_MenuBarBg, ground},
      {ImGuiCol_ScrollbarBg, none},
      {ImGuiCol_ScrollbarGrab, raised_more},
      {ImGuiCol_ScrollbarGrabHovered, faint},
      {ImGuiCol_ScrollbarGrabActive, faint},
      {ImGuiCol_CheckMark, accent},
      {ImGuiCol_SliderGrab, grab}, // the number behind it stays readable
      {ImGuiCol_SliderGrabActive, grab},
      {ImGuiCol_Button, raised},
      {ImGuiCol_ButtonHovered, raised_more},
      {ImGuiCol_ButtonActive, selection},
      {ImGuiCol_Header, selection},
      {ImGuiCol_HeaderHovered, raised_more},
      {ImGuiCol_HeaderActive, selection},
      {ImGuiCol_Separator, ground},
      {ImGuiCol_SeparatorHovered, accent},
      {ImGuiCol_SeparatorActive, accent},
      {ImGuiCol_ResizeGrip, none},
      {ImGuiCol_Tab, ground},
      {ImGuiCol_TabHovered, raised_more},
      {ImGuiCol_TabSelected, surface},
      {ImGuiCol_TabSelectedOverline, accent},
      {ImGuiCol_TabDimmed, ground},
      {ImGuiCol_TabDimmedSelected, surface},
      {ImGuiCol_TabDimmedSelectedOverline, grab},
      {ImGuiCol_DockingPreview, selection},
      {ImGuiCol_DockingEmptyBg, ground},
      {ImGuiCol_TableHeaderBg, surface},
      {ImGuiCol_TableBorderStrong, line},
      {ImGuiCol_TableBorderLight, line},
      {ImGuiCol_TextSelectedBg, selection},
      {ImGuiCol_NavCursor, accent},
      {ImGuiCol_ModalWindowDimBg, {0, 0, 0, mode == Mode::dark ? 0.45f : 0.25f}},
  };
  for (const auto& [index, colour] : table) style.Colors[index] = colour;
}

const Theme* current() { return static_cast<const Theme*>(ImGui::GetIO().UserData); }

Colour as_colour(const ImVec4& colour) { return {colour.x, colour.y, colour.z, colour.w}; }

} // namespace

const Palette& palette(Mode mode) { return mode == Mode::dark ? dark : light; }

Role::operator ImVec4() const {
  const Theme* theme = current();
  return theme == nullptr ? dark.at(index) : theme->colours.at(index);
}

Mode current_mode() { return current() == nullptr ? Mode::dark : current()->mode; }

void apply(Theme& theme, Mode mode) {
  theme.mode = mode;
  theme.colours = palette(mode);
  theme.kernels.clear();
  const Colour ground_colour = as_colour(theme.colours.at(surface.index));
  constexpr double graphical_contrast = 3; // WCAG 2.1, 1.4.11
  for (const KernelInfo& info : kernel_infos()) {
    theme.kernels[info.name] =
        with_contrast(hydrascope::kernel_colour(info.name), ground_colour, graphical_contrast);
  }
  ImGui::GetIO().UserData = &theme;
  set_spacing(ImGui::GetStyle());
  set_colours(ImGui::GetStyle(), mode);
}

Colour kernel(std::string_view name) {
  if (const Theme* theme = current()) {
    const auto found = theme->kernels.find(name.substr(0, name.find(':')));
    if (found != theme->kernels.end()) return found->second;
  }
  return hydrascope::kernel_colour(name);
}

ImVec4 ink_on(const Colour& colour) {
  return relative_luminance(colour) > 0.18 ? ImVec4{0.05f, 0.05f, 0.06f, 1} : ImVec4{0.95f, 0.95f, 0.96f, 1};
}

Colour ground_of_maps() {
  const ImVec4 colour = surface;
  return {colour.x, colour.y, colour.z, 1};
}

std::array<float, 2> hatching(Mode mode) {
  return mode == Mode::dark ? std::array{0.20f, 0.34f} : std::array{0.90f, 0.72f};
}

// Font files, mapped rather than read: of a Chinese font only the pages of the glyphs in use are loaded.
class FontFiles {
public:
  // Null if the file is not a readable font.
  ImFont* add(const FontFile& font, ImFontConfig config) {
    const std::span<const std::byte> bytes = mapped(font.file);
    if (bytes.empty()) return nullptr;
    config.FontDataOwnedByAtlas = false;
    config.FontNo = static_cast<unsigned int>(font.index);
    // Dear ImGui wants a mutable pointer but never writes to it, and does not free it (see above).
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
      return {}; // use the next candidate
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

// Adds the fonts that supply the symbols and scripts missing from `font`.
void add_fallbacks(ImFont* font, FontFiles& files) {
  ImFontConfig config;
  config.MergeMode = true;
  config.DstFont = font;
  if (files.add({"Inter", fonts_folder() / "Inter-Regular.otf"}, config) == nullptr)
    files.add({"Inter", "/usr/share/fonts/opentype/inter/Inter-Regular.otf"}, config);
  for (const FontFile& fallback : fallback_fonts()) files.add(fallback, config);
}

// `candidates`: paths below the system's folder of fonts; a package has the files in its own.
ImFont* load(std::initializer_list<const char*> candidates, FontFiles& files, std::string& note,
             const char* name) {
  for (const std::filesystem::path candidate : candidates) {
    for (const auto& file : {fonts_folder() / candidate.filename(), "/usr/share/fonts" / candidate}) {
      if (ImFont* font = files.add({name, file}, {})) {
        add_fallbacks(font, files);
        return font;
      }
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
  fonts.regular = load({"opentype/inter/Inter-Regular.otf", "truetype/inter/Inter-Regular.ttf",
                        "truetype/dejavu/DejaVuSans.ttf"},
                       files, fonts.note, "Inter");
  fonts.strong = load({"opentype/inter/Inter-SemiBold.otf", "truetype/inter/Inter-SemiBold.ttf",
                       "truetype/dejavu/DejaVuSans-Bold.ttf"},
                      files, fonts.note, "Inter SemiBold");
  fonts.mono =
      load({"truetype/jetbrains-mono/JetBrainsMono-Regular.ttf", "truetype/dejavu/DejaVuSansMono.ttf"}, files,
           fonts.note, "JetBrains Mono");
  return fonts;
}

} // namespace hydrascope::app::theme
