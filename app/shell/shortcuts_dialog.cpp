#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/actions/window_actions.h"
#include "app/shell/key_names.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

void ShortcutsDialog::stop() {
  capturing_.clear();
  wanted_.clear();
}

void ShortcutsDialog::capture(const std::vector<Action>& actions, Editor& editor) {
  if (capturing_.empty() || !wanted_.empty()) return;
  const ImGuiKeyChord chord = pressed_chord();
  if (chord == 0) return;
  if (chord == ImGuiKey_Escape) return stop();
  const std::string shortcut = shortcut_text(chord);
  if (action_with_shortcut(actions, shortcut, capturing_) != nullptr) {
    wanted_ = shortcut; // taken: the user decides
    return;
  }
  set_shortcut(editor, actions, capturing_, shortcut);
  stop();
}

void ShortcutsDialog::draw_row(const std::vector<Action>& actions, const Action& action, Editor& editor,
                               const Graphics& graphics) {
  ImGui::PushID(action.id.c_str());
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  ellipsis_text(action.label, ImGui::GetContentRegionAvail().x);
  ImGui::TableNextColumn();
  const bool here = capturing_ == action.id;
  ImGui::PushFont(graphics.fonts().mono, theme::size_small);
  ImGui::AlignTextToFramePadding();
  const std::string shown = here ? (wanted_.empty() ? "press keys…" : wanted_) : action.shortcut;
  ImGui::TextColored(here ? theme::amber : theme::accent, "%s", shown.c_str());
  ImGui::PopFont();
  ImGui::TableNextColumn();
  if (here) {
    if (ImGui::Button("Cancel")) stop();
  } else {
    if (ImGui::Button("Change")) {
      capturing_ = action.id;
      wanted_.clear();
    }
    ImGui::SameLine();
    ImGui::BeginDisabled(action.shortcut.empty());
    if (ImGui::Button("None")) set_shortcut(editor, actions, action.id, "");
    ImGui::EndDisabled();
    ImGui::SameLine();
    ImGui::BeginDisabled(action.shortcut == action.default_shortcut);
    if (ImGui::Button("Reset")) set_shortcut(editor, actions, action.id, action.default_shortcut);
    ImGui::EndDisabled();
  }
  ImGui::PopID();
}

void ShortcutsDialog::draw_conflict(const std::vector<Action>& actions, Editor& editor) {
  const Action* taken = action_with_shortcut(actions, wanted_, capturing_);
  const Action* here = find_action(actions, capturing_);
  if (taken == nullptr || here == nullptr) return stop();
  ImGui::PushTextWrapPos(0);
  ImGui::TextColored(theme::amber, "%s is used by “%s”.", wanted_.c_str(), taken->label.c_str());
  ImGui::PopTextWrapPos();
  if (ImGui::Button("Use it here instead")) {
    set_shortcut(editor, actions, capturing_, wanted_);
    stop();
  }
  ImGui::SameLine();
  if (ImGui::Button("Leave it there")) stop();
}

void ShortcutsDialog::draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics,
                           bool& open) {
  if (!open) {
    if (!capturing_.empty()) stop();
    return;
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 middle{viewport->WorkPos.x + viewport->WorkSize.x / 2,
                      viewport->WorkPos.y + viewport->WorkSize.y / 2};
  ImGui::SetNextWindowPos(middle, ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({720, std::min(560.0f, viewport->WorkSize.y - 32)}, ImGuiCond_Appearing);
  const OverlayStyle style;
  if (ImGui::Begin("Change shortcuts###shortcuts", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings)) {
    capture(actions, editor);
    ImGui::SetNextItemWidth(260);
    ImGui::InputTextWithHint("##filter", "Filter actions", &filter_);
    ImGui::SameLine();
    ImGui::BeginDisabled(editor.settings().shortcuts.empty());
    if (ImGui::Button("Reset all")) {
      stop();
      editor.change_settings([](Settings& settings) { settings.shortcuts.clear(); });
    }
    ImGui::EndDisabled();
    if (!wanted_.empty()) draw_conflict(actions, editor);
    const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
    if (ImGui::BeginTable("actions", 3, flags)) {
      ImGui::TableSetupColumn("Action", ImGuiTableColumnFlags_WidthStretch);
      ImGui::TableSetupColumn("Shortcut", ImGuiTableColumnFlags_WidthFixed, 150);
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 190);
      for (const Action& action : actions) {
        if (matches(action, filter_)) draw_row(actions, action, editor, graphics);
      }
      ImGui::EndTable();
    }
  }
  ImGui::End();
}

} // namespace hydrascope::app
