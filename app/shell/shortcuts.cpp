#include <algorithm>

#include <imgui.h>

#include "app/shell/key_names.h"
#include "app/shell/shell.h"

namespace hydrascope::app {

namespace {

// Typing goes into a text field; only what is held with Ctrl or Alt goes past it, and what the field does
// itself does not.
bool goes_into_text(const Action& action, ImGuiKeyChord chord) {
  if (!ImGui::GetIO().WantTextInput) return false;
  const bool held = (chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) != 0;
  const bool fields_own = action.id == "edit.undo" || action.id == "edit.redo" || action.id == "edit.copy" ||
                          action.id == "edit.paste";
  return !held || fields_own;
}

} // namespace

void run_shortcuts(const std::vector<Action>& actions, Editor& editor) {
  for (const Action& action : actions) {
    const ImGuiKeyChord chord = chord_of(action.shortcut);
    if (chord == 0 || goes_into_text(action, chord)) continue;
    const auto chords = with_alternatives(chord);
    const bool pressed =
        std::ranges::any_of(chords, [](ImGuiKeyChord each) { return ImGui::IsKeyChordPressed(each); });
    if (pressed && action.enabled(editor).ok) {
      action.run(editor);
      return;
    }
  }
}

} // namespace hydrascope::app
