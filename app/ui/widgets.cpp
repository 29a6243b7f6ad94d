#include "app/ui/widgets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>
#include <utf8proc.h>

#include "engine/base/text.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

// Whether a character begins at this place of the UTF-8 text; its end counts as one.
bool is_boundary(const std::string& text, std::size_t place) {
  return place >= text.size() || (static_cast<unsigned char>(text[place]) & 0xC0U) != 0x80U;
}

} // namespace

std::string fitted(std::string_view text, float width, const Cut cut) {
  const auto width_of = [](const std::string& candidate) { return ImGui::CalcTextSize(candidate.c_str()).x; };
  const std::string whole = with_known_glyphs(text);
  if (width_of(whole) <= width) return whole;
  for (std::size_t kept = whole.size() - 1; kept > 0; --kept) { // bytes, those of the two ends together
    const std::size_t last = cut == Cut::middle ? kept / 2 : 0, first = kept - last;
    if (!is_boundary(whole, first) || !is_boundary(whole, whole.size() - last)) continue;
    const std::string shown = whole.substr(0, first) + "…" + whole.substr(whole.size() - last);
    if (width_of(shown) <= width) return shown;
  }
  return "…";
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return parts;
}

std::string fitting_parts(std::span<const std::string> parts, float width) {
  std::string line;
  for (const std::string& part : parts) {
    std::string longer = line;
    if (!line.empty()) longer += "   ";
    longer += part;
    if (!line.empty() && ImGui::CalcTextSize(longer.c_str()).x > width) break;
    line = std::move(longer);
  }
  return line;
}

std::string with_known_glyphs(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (plain) return std::string(text);
  std::string result;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto read = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::size_t length = read > 0 ? static_cast<std::size_t>(read) : 1;
    if (read <= 0) code = 0xfffd; // a stray byte
    const bool known = code < 0x80 || (code <= IM_UNICODE_CODEPOINT_MAX &&
                                       ImGui::GetFont()->IsGlyphInFont(static_cast<ImWchar>(code)));
    if (known && read > 0) {
      result.append(text.substr(0, length));
    } else {
      result += fmt::format("U+{:04X}", static_cast<unsigned int>(code));
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string as_label(std::string_view text) {
  constexpr ImWchar zero_width_space = 0x200B;
  const std::string_view between = ImGui::GetFont()->IsGlyphInFont(zero_width_space) ? "\u200B" : " ";
  std::string label = with_known_glyphs(text);
  for (std::size_t at = 0; (at = label.find("##", at)) != std::string::npos;) label.insert(++at, between);
  if (label.ends_with('#')) label += between; // an id may follow
  return label;
}

void ellipsis_text(std::string_view text, float width, const ImVec4& colour) {
  const std::string shown = fitted(text, width);
  ImGui::TextColored(colour, "%s", shown.c_str());
  if (shown.size() != text.size() && ImGui::IsItemHovered()) {
    text_tooltip(text);
  }
}

namespace {

// Beside a small item under the pointer, such as a button, which stays in view; over a large one, such as a
// map, at the pointer.
void place_tooltip(ImVec2 size) {
  constexpr float most_height = 40, gap = 4;
  const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
  if (to.y - from.y > most_height || !ImGui::IsMouseHoveringRect(from, to)) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 end{viewport->Pos.x + viewport->Size.x, viewport->Pos.y + viewport->Size.y};
  const float x = std::max(viewport->Pos.x + gap, std::min(from.x, end.x - size.x - gap));
  const bool below = to.y + gap + size.y <= end.y;
  ImGui::SetNextWindowPos({x, below ? to.y + gap : from.y - gap - size.y});
}

} // namespace

void text_tooltip(std::string_view text) {
  ImGui::PushFont(ImGui::GetDefaultFont(), theme::size_small);
  const std::string shown = with_known_glyphs(text);
  const ImVec2 padding = ImGui::GetStyle().WindowPadding, size = ImGui::CalcTextSize(shown.c_str());
  place_tooltip({size.x + 2 * padding.x, size.y + 2 * padding.y});
  ImGui::SetTooltip("%s", shown.c_str());
  ImGui::PopFont();
}

void same_line_if_fits(float width, float spacing) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + spacing + width <= right) ImGui::SameLine(0, spacing);
}

bool is_low_window() {
  constexpr float low = 840;
  return ImGui::GetMainViewport()->Size.y < low;
}

void Toolbar::draw() const {
  constexpr float gap = 16;
  if (!is_low_window()) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (i > 0) same_line_if_fits(items_[i].width, gap);
      items_[i].control();
    }
    return;
  }
  const float room = ImGui::GetContentRegionAvail().x;
  const float button = button_width("…");
  float all = 0;
  for (const Item& item : items_) all += (all > 0 ? gap : 0) + item.width;
  float used = 0;
  std::size_t shown = 0;
  const float limit = all <= room ? room : room - button - gap;
  while (shown < items_.size() && (shown == 0 || used + gap + items_[shown].width <= limit)) {
    used += (shown > 0 ? gap : 0) + items_[shown].width;
    if (shown > 0) ImGui::SameLine(0, gap);
    items_[shown++].control();
  }
  if (shown == items_.size()) return;
  same_line_if_fits(button, gap); // the first control may leave no room
  if (ImGui::Button("…###more")) ImGui::OpenPopup("more");
  if (ImGui::IsItemHovered()) text_tooltip("Show more controls");
  if (!ImGui::BeginPopup("more")) return;
  for (; shown < items_.size(); ++shown) items_[shown].control();
  ImGui::EndPopup();
}

void field_label(const char* label, float column) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "%s", label);
  ImGui::SameLine(column + ImGui::GetStyle().WindowPadding.x);
}

void small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void wrapped_small_text(const Graphics& graphics, std::string_view text, const ImVec4& colour) {
  ImGui::PushTextWrapPos(0.0f);
  small_text(graphics, text, colour);
  ImGui::PopTextWrapPos();
}

void empty_notice(const Graphics& graphics, std::string_view text) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  const float width = std::min(room.x, 320.0f);
  const ImVec2 size = ImGui::CalcTextSize(text.data(), text.data() + text.size(), false, width);
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::SetCursorPos(
      {at.x + std::max(0.0f, (room.x - size.x) / 2), at.y + std::max(0.0f, (room.y - size.y) / 2)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x + 1);
  ImGui::PushStyleColor(ImGuiCol_Text, theme::quiet);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
}

namespace {

bool segment(const char* label, bool on) {
  ImGui::PushStyleColor(ImGuiCol_Button, on ? ImGui::GetStyleColorVec4(ImGuiCol_Header) : theme::raised);
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered,
                        ImGui::GetStyleColorVec4(on ? ImGuiCol_Header : ImGuiCol_ButtonHovered));
  ImGui::PushStyleColor(ImGuiCol_Text, on ? theme::text : theme::quiet);
  const bool clicked = ImGui::Button(label);
  ImGui::PopStyleColor(3);
  return clicked;
}

// Beside the last segment, or below the first in a narrow panel. Menus fit their contents and never wrap.
void next_segment(const char* label) {
  if ((ImGui::GetCurrentWindow()->Flags & ImGuiWindowFlags_AlwaysAutoResize) != 0) return ImGui::SameLine();
  same_line_if_fits(button_width(label), ImGui::GetStyle().ItemSpacing.x);
}

} // namespace

float button_width(const char* label) {
  return ImGui::CalcTextSize(label, nullptr, true).x + 2 * ImGui::GetStyle().FramePadding.x;
}

void same_line_for_last_button(const char* label) {
  const float from = ImGui::GetContentRegionMax().x - button_width(label);
  const float taken = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + ImGui::GetStyle().ItemSpacing.x;
  if (taken <= from) ImGui::SameLine(from);
}

int segmented(const char* id, std::span<const char* const> labels, int chosen,
              std::span<const char* const> reasons) {
  int clicked = -1;
  ImGui::PushID(id);
  ImGui::BeginGroup(); // a tooltip applies to the whole row
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(1, ImGui::GetStyle().ItemSpacing.y));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) next_segment(labels[i]);
    const char* reason = i < reasons.size() ? reasons[i] : "";
    ImGui::BeginDisabled(*reason != '\0');
    if (segment(labels[i], static_cast<int>(i) == chosen)) clicked = static_cast<int>(i);
    ImGui::EndDisabled();
    if (*reason != '\0' && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) text_tooltip(reason);
  }
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  ImGui::PopID();
  return clicked;
}

bool check_box(const char* label, bool* const on) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, theme::faint);
  const bool changed = ImGui::Checkbox(label, on);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  return changed;
}

int switches(const char* id, std::span<const char* const> labels, std::span<const bool> on,
             std::span<const char* const> tooltips) {
  int clicked = -1;
  ImGui::PushID(id);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 10);
    bool ticked = on[i];
    if (check_box(labels[i], &ticked)) clicked = static_cast<int>(i);
    if (ImGui::IsItemHovered()) text_tooltip(tooltips[i]);
  }
  ImGui::PopID();
  return clicked;
}

bool value_slider(const char* id, int* value, int least, int most, std::string_view text, float text_width,
                  ImGuiSliderFlags flags) {
  constexpr float gap = 6;
  const float whole = ImGui::CalcItemWidth();
  ImGui::SetNextItemWidth(std::max(24.0f, whole - text_width - gap));
  // The number in the slider appears only while it is typed (Ctrl+click).
  const bool typed = ImGui::TempInputIsActive(ImGui::GetID(id));
  if (!typed) ImGui::PushStyleColor(ImGuiCol_Text, ImVec4(0, 0, 0, 0));
  const bool changed = ImGui::SliderInt(id, value, least, most, "%d", flags);
  if (!typed) ImGui::PopStyleColor();
  ImGui::SameLine(0, gap);
  ImGui::AlignTextToFramePadding();
  ellipsis_text(text, text_width);
  return changed;
}

void kernel_square(ImDrawList* list, ImVec2 centre, float side, std::string_view kernel_name, float opacity) {
  const float half = side / 2;
  list->AddRectFilled({centre.x - half, centre.y - half}, {centre.x + half, centre.y + half},
                      theme::packed(theme::kernel(kernel_name), opacity), 2.0f);
}

void list_search(std::string& text) {
  if (ImGui::IsWindowAppearing()) {
    text.clear();
    ImGui::SetKeyboardFocusHere();
  }
  ImGui::SetNextItemWidth(-1);
  ImGui::InputTextWithHint("##list_search", "Search", &text);
}

int kernel_list(std::string_view chosen, std::string_view search, std::span<const std::string> taken) {
  int picked = -1;
  const auto& infos = kernel_infos();
  for (int family = 0; family < kernel_families; ++family) {
    bool named = false;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const KernelInfo& info = infos[i];
      const char* const family_text = family_name(info.family);
      if (static_cast<int>(info.family) != family) continue;
      if (!contains_any_case(info.name, search) && !contains_any_case(family_text, search)) continue;
      if (!std::exchange(named, true)) ImGui::TextColored(theme::quiet, "%s", family_text);
      const bool is_taken = std::ranges::count(taken, info.name) > 0;
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float height = ImGui::GetTextLineHeight();
      kernel_square(ImGui::GetWindowDrawList(), {at.x + height / 2, at.y + height / 2}, 9, info.name);
      ImGui::SetCursorScreenPos({at.x + height + 6, at.y});
      ImGui::BeginDisabled(is_taken);
      if (ImGui::Selectable(info.name.c_str(), info.name == chosen)) picked = static_cast<int>(i);
      ImGui::EndDisabled();
      if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
        text_tooltip(fmt::format("{}\n{}   {}{}", info.definition, info.complexity, info.source,
                                 is_taken ? "\nshown already" : ""));
    }
  }
  return picked;
}

int kernel_combo(const char* id, std::string_view preview, bool own, float width, std::string& search) {
  int chosen = -2;
  ImGui::SetNextItemWidth(width);
  // The name has precedence over the arrow.
  const float room = width - 12, arrow = ImGui::GetFrameHeight();
  const bool has_arrow =
      ImGui::CalcTextSize(preview.data(), preview.data() + preview.size()).x + arrow <= room;
  const std::string shown = fitted(preview, has_arrow ? room - arrow : room);
  const ImGuiComboFlags flags = has_arrow ? ImGuiComboFlags_None : ImGuiComboFlags_NoArrowButton;
  if (!ImGui::BeginCombo(id, shown.c_str(), ImGuiComboFlags_HeightLarge | flags)) return chosen;
  list_search(search);
  if (own && search.empty() && ImGui::Selectable("current kernel")) chosen = -1;
  if (const int listed = kernel_list(preview, search); listed >= 0) chosen = listed;
  ImGui::EndCombo();
  return chosen;
}

namespace {

// Quantity and scale, read upwards along the bar, right of its numbers. A low bar, and one with numbers up to
// `right`, has them in its tooltip alone.
void draw_bar_name(const Graphics& graphics, const Scale& scale, ImVec2 at, float height, float right) {
  constexpr float least_height = 60, size = 11;
  if (height < least_height || at.x + size > right || scale.label.empty()) return;
  std::vector<std::string> parts = parts_of(scale.label);
  if (scale.logarithmic) parts.emplace_back("log");
  if (scale.shared) parts.emplace_back("shared scale");
  ImGui::PushFont(graphics.fonts().regular, size);
  const std::string name = fitting_parts(parts, height);
  if (ImGui::CalcTextSize(name.c_str()).x > height) return ImGui::PopFont();
  const float bottom = at.y + (height + ImGui::CalcTextSize(name.c_str()).x) / 2;
  turned_text(ImGui::GetWindowDrawList(), {at.x, bottom}, theme::packed(theme::quiet), name);
  ImGui::PopFont();
}

} // namespace

void colour_bar(Graphics& graphics, const Scale& scale, ImVec2 from, float height, Backdrop backdrop,
                float width) {
  constexpr float bar = 10;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 to{from.x + bar, from.y + height};
  // The table runs along u; the quad is rotated so that the highest value is on top.
  list->AddImageQuad(graphics.colours(scale.map, backdrop).texture.reference(), from, {to.x, from.y}, to,
                     {from.x, to.y}, {1, 0}, {1, 1}, {0, 1}, {0, 0});
  ImGui::PushFont(graphics.fonts().mono, 11.0f);
  const float line = ImGui::GetTextLineHeight();
  const int most = std::clamp(static_cast<int>(height / 34), 2, 6);
  float free = to.y + line; // above the labels drawn so far
  float widest = 0;
  for (const Tick& tick : ticks(scale.low, scale.high, scale.logarithmic, most)) {
    const float y = to.y - static_cast<float>(tick.position) * height;
    list->AddLine({to.x, y}, {to.x + 3, y}, theme::packed(theme::faint));
    const float text_y = std::max(from.y - 2, std::min(y - line / 2, to.y - line + 2));
    if (text_y + line > free) continue; // the labels would touch
    free = text_y;
    list->AddText({to.x + 6, text_y}, theme::packed(theme::quiet), tick.text.c_str());
    widest = std::max(widest, ImGui::CalcTextSize(tick.text.c_str()).x);
  }
  ImGui::PopFont();
  const float right = from.x - 10 + width + ImGui::GetStyle().WindowPadding.x;
  if (width == colour_bar_width)
    draw_bar_name(graphics, scale, {from.x + bar + 8 + widest, from.y}, height, right);
  if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(from, {from.x + width - 10, to.y}))
    text_tooltip(fmt::format("{}\n{} scale, {}", scale.label, scale.shared ? "shared" : "own",
                             scale.logarithmic ? "logarithmic" : "linear"));
}

void turned_text(ImDrawList* list, ImVec2 at, ImU32 colour, const std::string& text) {
  at = {std::floor(at.x), std::floor(at.y)}; // between pixels a minus, one pixel high, would fade
  // Letters that are not in view may come into it by the turn.
  constexpr ImVec4 everywhere{-1e6f, -1e6f, 1e6f, 1e6f};
  const int first = list->VtxBuffer.Size;
  ImGui::GetFont()->RenderText(list, ImGui::GetFontSize(), at, colour, everywhere, text.data(),
                               text.data() + text.size());
  ImGui::ShadeVertsTransformPos(list, first, list->VtxBuffer.Size, at, 0, -1, at);
}

void right_aligned(ImDrawList* list, float right, float y, ImU32 colour, const std::string& text) {
  list->AddText({right - ImGui::CalcTextSize(text.c_str()).x, y}, colour, text.c_str());
}

void progress_line(float progress) {
  const ImVec2 from = ImGui::GetWindowPos();
  const ImVec2 size = ImGui::GetWindowSize();
  const float top = from.y + ImGui::GetCurrentWindow()->TitleBarHeight;
  ImGui::GetWindowDrawList()->AddRectFilled({from.x, top},
                                            {from.x + size.x * std::clamp(progress, 0.02f, 1.0f), top + 2},
                                            theme::packed(theme::accent));
}

} // namespace hydrascope::app
