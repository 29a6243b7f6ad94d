// Colours, spacing and fonts: the visual language in one place.
#pragma once

#include <string>

#include <imgui.h>

#include "engine/figures/colour_map.h"

namespace hydrascope::app::theme {

inline constexpr ImVec4 ground{0.055f, 0.059f, 0.067f, 1.0f};      // behind panels
inline constexpr ImVec4 surface{0.078f, 0.082f, 0.094f, 1.0f};     // panels
inline constexpr ImVec4 raised{0.118f, 0.125f, 0.141f, 1.0f};      // controls, popups
inline constexpr ImVec4 raised_more{0.165f, 0.173f, 0.196f, 1.0f}; // hovered controls
inline constexpr ImVec4 line{0.157f, 0.165f, 0.188f, 1.0f};        // separators
inline constexpr ImVec4 text{0.875f, 0.886f, 0.906f, 1.0f};
inline constexpr ImVec4 quiet{0.565f, 0.588f, 0.631f, 1.0f};  // labels, units
inline constexpr ImVec4 faint{0.350f, 0.370f, 0.410f, 1.0f};  // what cannot be used
inline constexpr ImVec4 accent{0.310f, 0.620f, 0.930f, 1.0f}; // selection
inline constexpr ImVec4 amber{0.930f, 0.690f, 0.260f, 1.0f};  // untrained, derived
inline constexpr ImVec4 red{0.940f, 0.380f, 0.350f, 1.0f};    // errors

inline constexpr float size_text = 15.0f;
inline constexpr float size_small = 13.0f;
inline constexpr float grid = 8.0f;

struct Fonts {
  ImFont* regular = nullptr;
  ImFont* strong = nullptr;
  ImFont* mono = nullptr;
  std::string note; // which fonts are missing; empty if none
};

// Loads Inter and JetBrains Mono where Debian puts them; where they are missing, Dear ImGui's own font
// serves.
Fonts load_fonts();
void apply_style();

inline ImU32 packed(const ImVec4& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.x, colour.y, colour.z, colour.w * opacity});
}
inline ImU32 packed(const Colour& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.red, colour.green, colour.blue, colour.alpha * opacity});
}

} // namespace hydrascope::app::theme
