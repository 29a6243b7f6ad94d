// The few widgets that several panels share, in the window's visual language.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// Text that ends in an ellipsis where it does not fit, with the whole of it as a tooltip.
void ellipsis_text(std::string_view text, float width, const ImVec4& colour = theme::text);
// A quiet label in a fixed-width column; the control follows on the same line.
void field_label(const char* label, float column = 64.0f);
void small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour = theme::quiet);
void wrapped_small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour = theme::quiet);
// What an empty panel says: what would fill it, and how.
void empty_notice(const Graphics& graphics, std::string_view text);

// A row of choices of which one is on. `reasons`: why an entry cannot be chosen ("" = it can); may be empty.
// Returns the clicked entry or −1.
int segmented(const char* id, std::span<const char* const> labels, int chosen,
              std::span<const char* const> reasons = {});

// The same with any number of them on. Returns the clicked entry or −1.
int switches(const char* id, std::span<const char* const> labels, std::span<const bool> on,
             std::span<const char* const> tooltips);

// The kernel's fixed colour as a small square with its name beside it; the colour never stands alone.
void kernel_square(ImDrawList* list, ImVec2 centre, float side, std::string_view kernel_name,
                   float opacity = 1.0f);
// A combo of all kernels. `own`: adds "the layer's own" first, which returns −1. Returns the registry index
// chosen now, or −2 if nothing was chosen.
int kernel_combo(const char* id, std::string_view preview, bool own, float width);

// A vertical colour bar with round numbers, and its scale named. Takes about 52 pixels of width.
void colour_bar(Graphics& graphics, const Scale& scale, ImVec2 from, float height);
inline constexpr float colour_bar_width = 60.0f;

// A thin line at the top of a panel while something is being computed; 0…1.
void progress_line(float progress);

// Goes on in the same line if a control of this width still fits there, else begins a new one.
void same_line_if_fits(float width, float spacing = 12.0f);

// A tooltip of a text in which letters may occur that no font has.
void text_tooltip(std::string_view text);

// Text that is cut to the width with an ellipsis, for drawing into a list; letters that no font has as
// U+XXXX.
std::string fitted(std::string_view text, float width);
// Text that ends at `right`.
void right_aligned(ImDrawList* list, float right, float y, ImU32 colour, const std::string& text);
// The text with every character that the current font lacks written as U+XXXX.
std::string with_known_glyphs(std::string_view text);

} // namespace hydrascope::app
