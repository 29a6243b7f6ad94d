// Colours, spacing and fonts: the visual language in one place. Everything is drawn in points; at a UI scale
// of 2 a point is two pixels.
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

// A colour by what it is for. It becomes the current theme's colour where a colour is wanted, so that a panel
// never learns which theme there is.
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
inline constexpr Role faint{8};   // what cannot be used
inline constexpr Role accent{9};  // selection
inline constexpr Role amber{10};  // untrained, derived
inline constexpr Role red{11};    // errors
inline constexpr Role side_a{12}; // bars of A …
inline constexpr Role side_b{13}; // … and of B, where a bar has no kernel's colour
inline constexpr std::size_t role_count = 14;

using Palette = std::array<ImVec4, role_count>;
const Palette& palette(Mode mode);

// Ink for a photograph or a data map, whose colours no theme changes: readable on any of them.
inline constexpr ImVec4 over_picture{1, 1, 1, 1};
inline constexpr ImVec4 under_picture_ring{0, 0, 0, 0.8f};
// Black or white, whichever can be read on this colour.
ImVec4 ink_on(const Colour& colour);

// The two greys of a masked cell's hatching: ground and stripe.
std::array<float, 2> hatching(Mode mode);

// The theme of Dear ImGui's current context; held by the Application for as long as the context lives.
struct Theme {
  Mode mode = Mode::dark;
  Palette colours = palette(Mode::dark);
  std::map<std::string, Colour, std::less<>> kernels; // a kernel's colour, legible on this theme's surface
};
// Makes it the theme that roles are looked up in, and gives Dear ImGui its colours and spacing.
void apply(Theme& theme, Mode mode);
Mode current_mode();
// The kernel's fixed hue, as light or dark as this theme's ground needs it (contrast of at least 3).
Colour kernel(std::string_view name);

inline constexpr float size_text = 15.0f;
inline constexpr float size_small = 13.0f;
inline constexpr float grid = 8.0f;

class FontFiles;

struct Fonts {
  ImFont* regular = nullptr;
  ImFont* strong = nullptr;
  ImFont* mono = nullptr;
  std::string note;                 // which fonts are missing; empty if none
  std::shared_ptr<FontFiles> files; // what the atlas reads from, for as long as it lives
};

// Loads Inter and JetBrains Mono where Debian puts them; where they are missing, Dear ImGui's own font
// serves. Scripts that they lack are taken from the fonts that fontconfig knows.
Fonts load_fonts();

inline ImU32 packed(const ImVec4& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.x, colour.y, colour.z, colour.w * opacity});
}
inline ImU32 packed(const Colour& colour, float opacity = 1.0f) {
  return ImGui::ColorConvertFloat4ToU32({colour.red, colour.green, colour.blue, colour.alpha * opacity});
}

} // namespace hydrascope::app::theme
