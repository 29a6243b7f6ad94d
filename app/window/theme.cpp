#include "app/window/theme.h"

#include <filesystem>
#include <initializer_list>

namespace hydrascope::app::theme {

namespace {

// Signs that a font lacks (superscripts, arrows, other scripts) are taken from the fonts that have them.
void add_fallbacks(ImFont* font) {
  ImFontConfig config;
  config.MergeMode = true;
  config.DstFont = font;
  for (const char* file : {"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                           "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
                           "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"}) {
    std::error_code none;
    if (std::filesystem::exists(file, none))
      ImGui::GetIO().Fonts->AddFontFromFileTTF(file, size_text, &config);
  }
}

ImFont* load(std::initializer_list<const char*> candidates, std::string& note, const char* name) {
  ImGuiIO& io = ImGui::GetIO();
  for (const char* candidate : candidates) {
    std::error_code none;
    if (!std::filesystem::exists(candidate, none)) continue;
    if (ImFont* font = io.Fonts->AddFontFromFileTTF(candidate, size_text)) {
      add_fallbacks(font);
      return font;
    }
  }
  note += std::string(note.empty() ? "font not found: " : ", ") + name;
  ImFontConfig config;
  config.SizePixels = size_text;
  return io.Fonts->AddFontDefault(&config);
}

} // namespace

Fonts load_fonts() {
  Fonts fonts;
  fonts.regular = load({"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                        "/usr/share/fonts/truetype/inter/Inter-Regular.ttf",
                        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"},
                       fonts.note, "Inter");
  fonts.strong = load({"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                       "/usr/share/fonts/truetype/inter/Inter-SemiBold.ttf",
                       "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"},
                      fonts.note, "Inter SemiBold");
  fonts.mono = load({"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf",
                     "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"},
                    fonts.note, "JetBrains Mono");
  return fonts;
}

void apply_style() {
  ImGuiStyle& style = ImGui::GetStyle();
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
  style.TabBarOverlineSize = 0;
  style.TabCloseButtonMinWidthSelected = 0;
  style.TabCloseButtonMinWidthUnselected = 0;
  style.DockingSeparatorSize = 4;
  style.WindowRounding = style.PopupRounding = 4;
  style.FrameRounding = style.GrabRounding = style.TabRounding = style.ScrollbarRounding = 3;
  style.SeparatorTextBorderSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;

  auto* colours = style.Colors;
  const ImVec4 selection{accent.x, accent.y, accent.z, 0.28f};
  const ImVec4 none{0, 0, 0, 0};
  const std::initializer_list<std::pair<ImGuiCol, ImVec4>> table = {
      {ImGuiCol_Text, text},
      {ImGuiCol_TextDisabled, quiet},
      {ImGuiCol_WindowBg, surface},
      {ImGuiCol_ChildBg, none},
      {ImGuiCol_PopupBg, {0.098f, 0.104f, 0.120f, 0.99f}},
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
      {ImGuiCol_SliderGrab, accent},
      {ImGuiCol_SliderGrabActive, accent},
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
      {ImGuiCol_TabDimmed, ground},
      {ImGuiCol_TabDimmedSelected, surface},
      {ImGuiCol_DockingPreview, selection},
      {ImGuiCol_DockingEmptyBg, ground},
      {ImGuiCol_TableHeaderBg, surface},
      {ImGuiCol_TableBorderStrong, line},
      {ImGuiCol_TableBorderLight, line},
      {ImGuiCol_TextSelectedBg, selection},
      {ImGuiCol_NavCursor, accent},
      {ImGuiCol_ModalWindowDimBg, {0, 0, 0, 0.45f}},
  };
  for (const auto& [index, colour] : table) colours[index] = colour;
}

} // namespace hydrascope::app::theme
