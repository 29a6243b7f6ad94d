#include <string>

#include <imgui.h>

#include "app/window/shell.h"

namespace hydrascope::app {

namespace {

ImGuiKey key_named(std::string_view name) {
  if (name == "?") return ImGuiKey_Slash; // with Shift, see chord_of
  if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z')
    return static_cast<ImGuiKey>(ImGuiKey_A + (name[0] - 'A'));
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9')
    return static_cast<ImGuiKey>(ImGuiKey_0 + (name[0] - '0'));
  if (name == "Up") return ImGuiKey_UpArrow;
  if (name == "Down") return ImGuiKey_DownArrow;
  if (name == "Left") return ImGuiKey_LeftArrow;
  if (name == "Right") return ImGuiKey_RightArrow;
  if (name == "Escape") return ImGuiKey_Escape;
  return ImGuiKey_None;
}

// "Ctrl+Shift+O" as Dear ImGui's chord; 0 if it names no key.
ImGuiKeyChord chord_of(std::string_view shortcut) {
  ImGuiKeyChord chord = 0;
  while (true) {
    const auto plus = shortcut.find('+');
    const std::string_view part = shortcut.substr(0, plus);
    if (plus == std::string_view::npos) {
      const ImGuiKey key = key_named(part);
      if (key == ImGuiKey_None) return 0;
      if (part == "?") chord |= ImGuiMod_Shift;
      return chord | key;
    }
    if (part == "Ctrl") chord |= ImGuiMod_Ctrl;
    if (part == "Shift") chord |= ImGuiMod_Shift;
    if (part == "Alt") chord |= ImGuiMod_Alt;
    shortcut.remove_prefix(plus + 1);
  }
}

} // namespace

void run_shortcuts(const std::vector<Action>& actions, Editor& editor) {
  const ImGuiIO& io = ImGui::GetIO();
  for (const Action& action : actions) {
    if (action.shortcut.empty()) continue;
    const ImGuiKeyChord chord = chord_of(action.shortcut);
    const bool with_control = (chord & ImGuiMod_Ctrl) != 0;
    if (chord == 0 || (io.WantTextInput && !with_control)) continue;
    if (editor.shell.palette_open) continue;
    if (ImGui::IsKeyChordPressed(chord) && action.enabled(editor).ok) {
      if (io.WantTextInput && (action.id == "edit.undo" || action.id == "edit.redo"))
        continue; // the field's own undo
      action.run(editor);
      return;
    }
  }
}

} // namespace hydrascope::app
