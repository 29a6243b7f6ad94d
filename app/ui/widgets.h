// Widgets that several panels share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <imgui.h>

#include "app/ui/graphics.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// Where a text that is too long loses characters to an ellipsis: names of files differ at their ends.
enum class Cut { end, middle };
// Text, cut with an ellipsis where it does not fit; then a tooltip shows all of it.
void ellipsis_text(std::string_view text, float width, const ImVec4& colour = theme::text);
// A quiet label in a fixed-width column; the control follows on the same line.
void field_label(const char* label, float column = 64.0f);
void small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour = theme::quiet);
void wrapped_small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour = theme::quiet);
// The text of an empty panel: what it would show, and how to get it.
void empty_notice(const Graphics& graphics, std::string_view text);

// Of a button with this label, less what follows "##".
float button_width(const char* label);
// Continues the line so that a button with this label ends at its right edge, if it fits there.
void same_line_for_last_button(const char* label);

// A row of buttons of which one is selected. `reasons`: why an entry is disabled ("" = enabled); may be
// empty. Returns the clicked entry or −1.
int segmented(const char* id, std::span<const char* const> labels, int chosen,
              std::span<const char* const> reasons = {});

// A check box with an outline, without which an empty one is not seen on its panel.
bool check_box(const char* label, bool* on);

// A row of boxes of which any number is ticked. Returns the clicked entry or −1.
int switches(const char* id, std::span<const char* const> labels, std::span<const bool> on,
             std::span<const char* const> tooltips);

// A slider of whole numbers with `text` for its value beside it, where the grab does not cover it. Takes the
// width of the next item, of which the text gets `text_width`. True in a frame that changes the value.
bool value_slider(const char* id, int* value, int least, int most, std::string_view text, float text_width,
                  ImGuiSliderFlags flags = ImGuiSliderFlags_AlwaysClamp);

// A small square in the kernel's fixed colour. Draw the kernel's name beside it.
void kernel_square(ImDrawList* list, ImVec2 centre, float side, std::string_view kernel_name,
                   float opacity = 1.0f);
// The search at the top of an open list, in focus; `text` is cleared when the list opens.
void list_search(std::string& text);
// The kernels with these letters in their name or family, by family; those `taken` are disabled. Returns the
// registry index picked in this frame or −1.
int kernel_list(std::string_view chosen, std::string_view search, std::span<const std::string> taken = {});
// A combo box of all kernels with a search. `own`: the first entry is "current kernel", that of the layer.
// Returns the registry index chosen in this frame, −1 for the current kernel, −2 for none.
int kernel_combo(const char* id, std::string_view preview, bool own, float width, std::string& search);

inline constexpr float colour_bar_width = 68.0f, narrow_colour_bar_width = 40.0f;
// A vertical colour bar with ticks at round numbers and, unless narrow, the scale's name, which the tooltip
// says in full. `width`: one of the above, with the gap before the bar.
void colour_bar(Graphics& graphics, const Scale& scale, ImVec2 from, float height,
                Backdrop backdrop = Backdrop::matrix, float width = colour_bar_width);

// A thin line at the top of a panel during a computation; `progress` in 0…1.
void progress_line(float progress);

// The controls above a panel's content. They wrap; in a low window they take one line, and what does not fit
// into it is in a menu behind "…".
class Toolbar {
public:
  // `width`: at most what the control takes.
  void add(float width, std::function<void()> control) { items_.push_back({width, std::move(control)}); }
  void draw() const;

private:
  struct Item {
    float width = 0;
    std::function<void()> control;
  };
  std::vector<Item> items_;
};
// Whether the window is as low as a laptop's: panels leave out or fold what is not needed.
bool is_low_window();

// Continues the line if a control of this width fits into it.
void same_line_if_fits(float width, float spacing = 12.0f);

// The tooltip of the last item, or of what the pointer is at in it, in the tooltips' one font; see
// with_known_glyphs().
void text_tooltip(std::string_view text);

// What commas separate in a text, for fitting_parts().
std::vector<std::string> parts_of(std::string_view text);
// The text, cut to the width with an ellipsis, with unknown glyphs as in with_known_glyphs().
std::string fitted(std::string_view text, float width, Cut cut = Cut::end);
// As many of the parts as fit into the width, in their order, which is that of importance; at least the
// first.
std::string fitting_parts(std::span<const std::string> parts, float width);
// Draws text turned by 90°, read upwards, that begins at `at`, its lower left corner. It is never clipped.
void turned_text(ImDrawList* list, ImVec2 at, ImU32 colour, const std::string& text);
// Draws text that ends at `right`.
void right_aligned(ImDrawList* list, float right, float y, ImU32 colour, const std::string& text);
// The text with each character missing from the current font written as U+XXXX.
std::string with_known_glyphs(std::string_view text);
// The same as a label, of which Dear ImGui shows all: it takes "##", with which word pieces begin, for the
// start of an id and hides the rest.
std::string as_label(std::string_view text);

} // namespace hydrascope::app
