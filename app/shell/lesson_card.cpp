// The card of a lesson: where to look, what to click, and what that shows.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "app/document/session_edits.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float lesson_gap = 12;

ScreenRectangle place_of(const Lesson& lesson) { return panel_place(lesson.panel).value_or(work_place()); }

// Whether the paragraphs stand beside each other: in a low panel as wide as the card needs for that.
bool in_columns(const ScreenRectangle& place) {
  constexpr float least = 800;
  return is_low_window() && place.to.x - place.from.x >= least;
}

// As wide as the other cards, less in a narrow panel; with columns as wide as the panel.
float lesson_width(const ScreenRectangle& place) {
  const float room = place.to.x - place.from.x - 2 * lesson_gap;
  return in_columns(place) ? room : std::clamp(room, 260.0f, explaining_card_width);
}

// Over the lower right part of the place, but never above the menu or beyond the window's left side.
void place_lesson_card(const ScreenRectangle& place) {
  const ImGuiWindow* const card = ImGui::FindWindowByName("###lesson");
  const float height = card == nullptr ? 0 : card->Size.y;
  const float bottom = std::max(place.to.y - lesson_gap, work_place().from.y + height);
  const float right = std::max(place.to.x, work_place().from.x + lesson_width(place) + 2 * lesson_gap);
  ImGui::SetNextWindowPos({right - lesson_gap, bottom}, ImGuiCond_Always, {1, 1});
}

void draw_paragraph(const Graphics& graphics, const char* heading, const std::string& text) {
  if (text.empty()) return;
  ImGui::Dummy({0, 2});
  ImGui::PushFont(graphics.fonts().strong, theme::size_small);
  ImGui::TextColored(theme::accent, "%s", heading);
  ImGui::PopFont();
  wrapped_small_text(graphics, text, theme::text);
}

void draw_paragraphs(const Graphics& graphics, const Lesson& lesson, bool columns) {
  if (columns && !ImGui::BeginTable("paragraphs", 3)) return;
  for (const auto& [heading, text] : {std::pair<const char*, const std::string&>{"Look", lesson.look},
                                      {"Click", lesson.click},
                                      {"It shows", lesson.shows}}) {
    if (columns) ImGui::TableNextColumn();
    draw_paragraph(graphics, heading, text);
  }
  if (columns) ImGui::EndTable();
}

void draw_lesson_buttons(const std::vector<GalleryEntry>& entries, std::size_t position, Editor& editor) {
  ImGui::Dummy({0, 2});
  if (ImGui::Button("All lessons")) editor.emit(ShowOverlay{Overlay::gallery});
  if (position + 1 >= entries.size()) return;
  const GalleryEntry& next = entries[position + 1];
  const char* const label = "Next lesson";
  same_line_for_last_button(label);
  if (ImGui::Button(label)) open_session(editor, next.session);
  if (ImGui::IsItemHovered()) text_tooltip("Opens “" + next.lesson.title + "”; Ctrl+Z comes back");
}

} // namespace

void LessonCard::draw(const std::vector<GalleryEntry>& entries, Editor& editor, const Graphics& graphics,
                      const Overlays& overlays) {
  const Lesson* const shown = shown_lesson(editor);
  if (shown == nullptr || overlays.tour) return title_.clear();
  const Lesson lesson = *shown; // a button may open another session
  if (lesson.title != title_) moved_ = false;
  title_ = lesson.title;
  const auto position =
      static_cast<std::size_t>(std::ranges::find(entries, lesson, &GalleryEntry::lesson) - entries.begin());
  const ScreenRectangle place = place_of(lesson);
  if (!moved_) place_lesson_card(place);
  ImGui::SetNextWindowSize({lesson_width(place), 0});
  const OverlayStyle style(theme::accent);
  const std::string name = position < entries.size()
                               ? fmt::format("Lesson {} of {}###lesson", position + 1, entries.size())
                               : std::string("Lesson###lesson"); // someone's own
  bool stays = true;
  if (ImGui::Begin(name.c_str(), &stays, explaining_card_flags)) {
    const ImGuiWindow* const moving = ImGui::GetCurrentContext()->MovingWindow;
    moved_ |= moving == ImGui::GetCurrentWindow() && ImGui::IsMouseDragging(ImGuiMouseButton_Left);
    ImGui::PushFont(graphics.fonts().strong, theme::size_text);
    ImGui::TextUnformatted(lesson.title.c_str());
    ImGui::PopFont();
    draw_paragraphs(graphics, lesson, in_columns(place));
    draw_lesson_buttons(entries, position, editor);
  }
  ImGui::End();
  if (!stays) editor.session().lesson_closed = true;
}

} // namespace hydrascope::app
