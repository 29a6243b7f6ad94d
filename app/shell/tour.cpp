// The guided tour: a card beside the framed panel of its current step. Blocks nothing, and notices completed
// steps.
#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "app/actions/tour.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float card_width = 340;
constexpr float gap = 12;

struct Rectangle {
  ImVec2 from, to;
};

// The rectangle of the step's panel with its tab, or of the whole window.
Rectangle place_of(const TourStep& step) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 end{viewport->WorkPos.x + viewport->WorkSize.x, viewport->WorkPos.y + viewport->WorkSize.y};
  const ImGuiWindow* window =
      *step.panel == '\0' ? nullptr : ImGui::FindWindowByName(fmt::format("###{}", step.panel).c_str());
  if (window == nullptr) return {viewport->WorkPos, end};
  const ImGuiDockNode* node = window->DockNode;
  if (node == nullptr) return {window->Pos, {window->Pos.x + window->Size.x, window->Pos.y + window->Size.y}};
  return {node->Pos, {node->Pos.x + node->Size.x, node->Pos.y + node->Size.y}};
}

// Beside the panel if there is space, else over its lower part; in the middle of the window without a panel.
void place_card(const TourStep& step, const Rectangle& panel) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 middle{(panel.from.x + panel.to.x) / 2, (panel.from.y + panel.to.y) / 2};
  if (*step.panel == '\0') return ImGui::SetNextWindowPos(middle, ImGuiCond_Always, {0.5f, 0.5f});
  const float left = viewport->WorkPos.x, right = left + viewport->WorkSize.x;
  const bool wide = panel.to.x - panel.from.x >
                    1.5f * card_width; // the card covers part of it rather than of another panel
  if (!wide && panel.to.x + gap + card_width < right) {
    ImGui::SetNextWindowPos({panel.to.x + gap, panel.from.y + 40}, ImGuiCond_Always);
  } else if (!wide && panel.from.x - gap - card_width > left) {
    ImGui::SetNextWindowPos({panel.from.x - gap, panel.from.y + 40}, ImGuiCond_Always, {1, 0});
  } else {
    ImGui::SetNextWindowPos({middle.x, panel.to.y - gap}, ImGuiCond_Always, {0.5f, 1});
  }
}

void draw_buttons(Editor& editor, std::optional<TourState>& tour, std::size_t step, bool finished) {
  const std::size_t count = tour_steps().size();
  const bool welcome = step == 0, last = step + 1 == count;
  if (ImGui::Button(welcome ? "Not now" : "End")) return end_tour(editor, tour);
  if (step > 1) {
    ImGui::SameLine();
    if (ImGui::Button("Back")) return go_to_tour_step(editor, tour, step - 1);
  }
  const char* const next = welcome ? "Show me around" : last ? "Done" : "Next";
  const float width = ImGui::CalcTextSize(next).x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SameLine(ImGui::GetContentRegionMax().x - width);
  const bool inviting = finished || welcome || last;
  if (inviting) {
    ImGui::PushStyleColor(ImGuiCol_Button, theme::accent);
    ImGui::PushStyleColor(ImGuiCol_Text, theme::popup);
  }
  const bool pressed = ImGui::Button(next);
  if (inviting) ImGui::PopStyleColor(2);
  if (pressed) go_to_tour_step(editor, tour, step + 1);
}

} // namespace

void draw_tour(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics,
               std::optional<TourState>& tour) {
  if (!tour) return;
  TourState& state = *tour;
  const TourStep& step = tour_steps()[state.step];
  if (step.done != nullptr && !state.done) state.done = step.done(state, editor);
  const Rectangle panel = place_of(step);
  if (*step.panel != '\0')
    ImGui::GetForegroundDrawList()->AddRect(panel.from, panel.to, theme::packed(theme::accent), 3.0f, 0,
                                            2.0f);
  place_card(step, panel);
  ImGui::SetNextWindowSize({card_width, 0});
  const OverlayStyle style(theme::accent);
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                 ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                                 ImGuiWindowFlags_NoNav;
  if (ImGui::Begin("###tour", nullptr, flags)) {
    if (state.step > 0) small_text(graphics, fmt::format("{} of {}", state.step, tour_steps().size() - 1));
    ImGui::PushFont(graphics.fonts().strong, theme::size_text);
    ImGui::TextUnformatted(step.title);
    ImGui::PopFont();
    if (state.done) {
      ImGui::SameLine();
      ImGui::TextColored(theme::accent, "done");
    }
    ImGui::PushTextWrapPos(card_width - 12);
    ImGui::TextUnformatted(tour_text(step, actions).c_str());
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
