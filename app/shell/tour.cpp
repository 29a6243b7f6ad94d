// The guided tour: a card beside the framed panel of its current step. The window stays usable, and a step
// that is completed is marked as done.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "app/actions/tour.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float card_width = explaining_card_width;
constexpr float gap = 12;

// The rectangle of the step's panel, or of the whole window.
ScreenRectangle place_of(const TourStep& step) { return panel_place(step.panel).value_or(work_place()); }

ImRect rectangle(const ScreenRectangle& place) { return {place.from, place.to}; }

// What two rectangles have in common, in square points.
float covered(ImRect one, const ImRect& other) {
  one.ClipWithFull(other);
  return std::max(one.GetWidth(), 0.0f) * std::max(one.GetHeight(), 0.0f);
}

// Beside the panel or in a corner of the window: where the card covers least of the panel, then of the other
// panel that the step speaks of, then of the focus map, which most steps change. In the middle of the window
// without a panel.
void place_card(const TourStep& step, const ScreenRectangle& panel) {
  const ImVec2 middle{(panel.from.x + panel.to.x) / 2, (panel.from.y + panel.to.y) / 2};
  if (*step.panel == '\0') return ImGui::SetNextWindowPos(middle, ImGuiCond_Always, {0.5f, 0.5f});
  const ImGuiWindow* const card = ImGui::FindWindowByName("###tour");
  const ImVec2 size{card_width, card == nullptr ? 150.0f : card->Size.y};
  const ImRect framed = rectangle(panel), window = rectangle(work_place());
  const auto focus = panel_place("focus"), other = panel_place(step.other_panel);
  const std::array<ImVec2, 6> places = {{{panel.to.x + gap, panel.from.y + 40},
                                         {panel.from.x - gap - size.x, panel.from.y + 40},
                                         {panel.from.x, panel.to.y + gap},
                                         {panel.to.x - size.x, panel.from.y - gap - size.y},
                                         {window.Max.x - gap, window.Max.y - gap - size.y},
                                         {window.Min.x + 4, window.Max.y - gap - size.y}}};
  ImVec2 best = places.front();
  float least = std::numeric_limits<float>::infinity();
  for (ImVec2 at : places) {
    at = {std::clamp(at.x, window.Min.x, std::max(window.Min.x, window.Max.x - size.x)),
          std::clamp(at.y, window.Min.y, std::max(window.Min.y, window.Max.y - size.y))};
    const ImRect box(at.x, at.y, at.x + size.x, at.y + size.y);
    const float cost = 16 * covered(box, framed) + (other ? 8 * covered(box, rectangle(*other)) : 0) +
                       (focus ? covered(box, rectangle(*focus)) : 0);
    if (cost >= least) continue;
    least = cost;
    best = at;
  }
  ImGui::SetNextWindowPos(best, ImGuiCond_Always);
}

// Above the panels, but below menus, tooltips and the card.
void outline(const TourStep& step, const ScreenRectangle& place) {
  const ImGuiWindow* const panel = ImGui::FindWindowByName(fmt::format("###{}", step.panel).c_str());
  if (*step.panel == '\0' || panel == nullptr) return;
  panel->DrawList->PushClipRectFullScreen();
  panel->DrawList->AddRect({place.from.x + 1, place.from.y + 1}, {place.to.x - 1, place.to.y - 1},
                           theme::packed(theme::accent), 3.0f, 0, 2.0f);
  panel->DrawList->PopClipRect();
}

void draw_buttons(Editor& editor, std::optional<TourState>& tour, std::size_t step, bool finished) {
  const std::size_t count = tour_steps().size();
  const bool last = step + 1 == count;
  if (ImGui::Button("End")) return end_tour(editor, tour);
  if (step > 0) {
    ImGui::SameLine();
    if (ImGui::Button("Back")) return go_to_tour_step(editor, tour, step - 1);
  }
  const char* const next = last ? "Done" : "Next";
  same_line_for_last_button(next);
  const bool inviting = finished || last;
  if (inviting) {
    ImGui::PushStyleColor(ImGuiCol_Button, theme::accent);
    ImGui::PushStyleColor(ImGuiCol_Text, theme::popup);
  }
  const bool pressed = ImGui::Button(next);
  if (inviting) ImGui::PopStyleColor(2);
  if (pressed) go_to_tour_step(editor, tour, step + 1);
}

} // namespace

std::optional<ScreenRectangle> panel_place(std::string_view panel) {
  const ImGuiWindow* window =
      panel.empty() ? nullptr : ImGui::FindWindowByName(fmt::format("###{}", panel).c_str());
  if (window == nullptr || !window->WasActive) return std::nullopt;
  const ImGuiDockNode* node = window->DockNode;
  const ImVec2 from = node == nullptr ? window->Pos : node->Pos;
  const ImVec2 size = node == nullptr ? window->Size : node->Size;
  return ScreenRectangle{from, {from.x + size.x, from.y + size.y}};
}

ScreenRectangle work_place() {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 from = viewport->WorkPos;
  return {from, {from.x + viewport->WorkSize.x, from.y + viewport->WorkSize.y}};
}

void draw_tour(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics,
               std::optional<TourState>& tour) {
  if (!tour) return;
  TourState& state = *tour;
  const TourStep& step = tour_steps()[state.step];
  if (step.done != nullptr && !state.done) state.done = step.done(state, editor);
  const ScreenRectangle panel = place_of(step);
  outline(step, panel);
  place_card(step, panel);
  ImGui::SetNextWindowSize({card_width, 0});
  const OverlayStyle style(theme::accent);
  if (ImGui::Begin("###tour", nullptr,
                   explaining_card_flags | ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoMove)) {
    small_text(graphics, fmt::format("{} of {}", state.step + 1, tour_steps().size()));
    ImGui::PushFont(graphics.fonts().strong, theme::size_text);
    ImGui::TextUnformatted(step.title);
    ImGui::PopFont();
    if (state.done) {
      ImGui::SameLine();
      ImGui::TextColored(theme::accent, "done");
    }
    ImGui::PushTextWrapPos(card_width - 12);
    ImGui::TextUnformatted(
        tour_text(step, editor.document().kind, actions, is_decoder(editor.document().scene())).c_str());
    ImGui::PopTextWrapPos();
    if (step.shortcut && !state.done) {
      ImGui::Dummy({0, 2});
      if (ImGui::Button(step.shortcut->label)) step.shortcut->run(editor);
    }
    ImGui::Dummy({0, 2});
    draw_buttons(editor, tour, state.step, state.done);
  }
  ImGui::End();
}

} // namespace hydrascope::app
