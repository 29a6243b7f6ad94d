// Colours, spacing and fonts. Everything is drawn in points; at a UI scale of 2 a point is two pixels.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "engine/figures/colour_map.h"

namespace hydrascope::app::theme {

enum class Mode { dark, light };

// A colour by its purpose. Converts to the current theme's colour, so that panels do not depend on the theme.
struct Role {
  std::size_t index = 0;
  operator ImVec4() const; // NOLINT(google-explicit-constructor)
};

inline constexpr Role ground{0};      // behind panels
inline constexpr Role surface{1};     // panels
inline constexpr Role raised{2};      // controls
inline constexpr Role raised_more{3}; // hovered controls
inline constexpr Role popup{4};       // menus, tooltips, dialogs
inline constexpr Role line{5};        // separators, zero lines
inline constexpr Role text{6};
inline constexpr Role quiet{7};   // labels, units
inline constexpr Role faint{8};   // disabled
inline constexpr Role accent{9};  // selection
inline constexpr Role amber{10};  // untrained, derived
inline constexpr Role red{11};    // errors
inline constexpr Role side_a{12}; // bars of A
inline constexpr Role side_b{13}; // bars of B, where a bar has no kernel's colour
inline constexpr std::size_t role_count = 14;

using Palette = std::array<ImVec4, role_count>;
const Palette& palette(Mode mode);

// Ink on photographs and data maps, whose colours do not depend on the theme: readable on all of them.
inline constexpr ImVec4 over_picture{1, 1, 1, 1};
inline constexpr ImVec4 under_picture_ring{0, 0, 0, 0.8f};
// Black or white, whichever is readable on this colour.
ImVec4 ink_on(const Colour& colour);

// The ground that the colours of maps are made for: the panels'.
Colour ground_of_maps();

// The two greys of a masked cell's hatching: ground and stripe.
std::array<float, 2> hatching(Mode mode);

// The theme of Dear ImGui's current context, which points to it.
struct Theme {
  Mode mode = Mode::dark;
  Palette colours = palette(Mode::dark);
  std::map<std::string, Colour, std::less<>> kernels; // a kernel's colour, legible on this theme's surface
};
// Makes `theme` the current one and sets Dear ImGui's colours and spacing.
void apply(Theme& theme, Mode mode);
Mode current_mode();
// The kernel's fixed hue, adjusted in lightness to a contrast of at least 3 on this theme's ground.
Colour kernel(std::string_view name);

inline constexpr float size_text = 15.0f;
inline constexpr float size_small = 13.0f;
inline constexpr float grid = 8.0f;

class FontFiles;

struct Fonts {
  ImFont* regular = nullptr;
  ImFont* strong = nullptr;
  ImFont* mono = nullptr;
  std::string note;                 // names the missing fonts; empty if none
  std::shared_ptr<FontFiles> files; // read by Dear ImGui's font atlas; must outlive it
};

// Loads Inter and JetBrains Mono from where Debian installs them, else Dear ImGui's own font. Scripts missing
// from them come from the fonts known to fontconfig.
Fonts load_fonts();

inline ImU32 packed(const ImVec4& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.x, colour.y, colour.z, colour.w * opacity});
}
inline ImU32 packed(const Colour& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.red, colour.green, colour.blue, colour.alpha * opacity});
}

} // namespace hydrascope::app::theme
