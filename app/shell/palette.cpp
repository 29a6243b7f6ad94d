#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

OverlayStyle::OverlayStyle(const ImVec4& border) {
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_PopupBg));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0f);
}

OverlayStyle::~OverlayStyle() {
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
}

void Palette::draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open) {
  if (!open) {
    was_open_ = false;
    return;
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + 48},
                          ImGuiCond_Always, {0.5f, 0});
  ImGui::SetNextWindowSize({640, 420});
  const OverlayStyle style;
  const bool appearing = !was_open_;
  if (appearing) {
    query_.clear();
    chosen_ = 0;
    ImGui::SetNextWindowFocus();
  }
  was_open_ = true;
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                 ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoScrollbar;
  if (ImGui::Begin("Search actions###palette", nullptr, flags)) {
    if (appearing) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputTextWithHint("##query", "What do you want to do?", &query_)) chosen_ = 0;
    std::vector<const Action*> found;
    for (const Action& action : actions) {
      if (matches(action, query_)) found.push_back(&action);
    }
    const int count = static_cast<int>(found.size());
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
    chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
    const bool enter = ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter);
    const Action* run = nullptr;
    if (ImGui::BeginChild("list")) {
      for (int i = 0; i < count; ++i) {
        const Action& action = *found[static_cast<std::size_t>(i)];
        const Availability availability = action.enabled(editor);
        ImGui::PushID(action.id.c_str());
        ImGui::PushStyleColor(ImGuiCol_Text, availability.ok ? theme::text : theme::faint);
        if (ImGui::Selectable(action.label.c_str(), i == chosen_)) run = &action;
        ImGui::PopStyleColor();
        if (i == chosen_ && !ImGui::IsItemVisible()) ImGui::SetScrollHereY(0.5f);
        const std::string right =
            availability.ok ? (action.shortcut.empty() ? action.menu : action.menu + "   " + action.shortcut)
                            : availability.reason;
        ImGui::PushFont(graphics.fonts().regular, theme::size_small);
        ImGui::SameLine(
            std::max(240.0f, ImGui::GetContentRegionMax().x - ImGui::CalcTextSize(right.c_str()).x - 4));
        ImGui::TextColored(theme::quiet, "%s", right.c_str());
        ImGui::PopFont();
        ImGui::PopID();
        if (i == chosen_ && enter) run = &action;
      }
    }
    ImGui::EndChild();
    const bool left = !appearing && !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows);
    if (run != nullptr || ImGui::IsKeyPressed(ImGuiKey_Escape) || left) open = false;
    if (run != nullptr) run_action(actions, run->id, editor);
  }
  ImGui::End();
}

void draw_help_sheet(const std::vector<Action>& actions, const Graphics& graphics, bool& open) {
  if (!open) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(
      {viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y / 2},
      ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({720, std::min(560.0f, viewport->WorkSize.y - 32)}, ImGuiCond_Appearing);
  const OverlayStyle style;
  if (ImGui::Begin("Shortcuts and gestures###help", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings)) {
    if (ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
    if (ImGui::BeginTable("shortcuts", 2, ImGuiTableFlags_SizingFixedFit)) {
      for (const Action& action : actions) {
        if (action.shortcut.empty()) continue;
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        ImGui::PushFont(graphics.fonts().mono, theme::size_small);
        ImGui::TextColored(theme::accent, "%-14s", action.shortcut.c_str());
        ImGui::PopFont();
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(action.label.c_str());
      }
      static constexpr std::array<std::array<const char*, 2>, 6> gestures = {{
          {"hover", "the numbers under the pointer; the same token lights up everywhere"},
          {"click", "a patch or word: make it the query; again: back to what the target reads"},
          {"Alt+click", "a patch: hide it; a word: mask it; again: show it"},
          {"click", "a layer, a head's cell, a class: select it everywhere"},
          {"right-click", "a panel: export or copy its figure"},
          {"drop", "a picture, a text file, a folder of pictures or a model's folder: open it"},
      }};
      for (const auto& [gesture, meaning] : gestures) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        ImGui::PushFont(graphics.fonts().mono, theme::size_small);
        ImGui::TextColored(theme::quiet, "%s", gesture);
        ImGui::PopFont();
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(meaning);
      }
      ImGui::EndTable();
    }
  }
  ImGui::End();
}

} // namespace hydrascope::app
