// Shortcuts: their written form ("Ctrl+Shift+O") as Dear ImGui's key chords, and the dialog that changes
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/actions/actions.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

ImGuiKeyChord chord_of(std::string_view shortcut); // 0 if it names no key
std::string shortcut_text(ImGuiKeyChord chord);    // empty if the key has no name here
// The chord and its equivalents: keys of the number pad; + for =, which share a key on most keyboards.
std::vector<ImGuiKeyChord> with_alternatives(ImGuiKeyChord chord);
// The chord pressed in this frame; 0 if there is none. Modifiers alone are none.
ImGuiKeyChord pressed_chord();

// Runs the action whose shortcut was pressed. Keys run none while they go to an open menu or list, which
// Escape closes, or into a text field.
void run_shortcuts(const std::vector<Action>& actions, Editor& editor);

// Lists the actions' shortcuts and changes them by pressing keys. Asks before it takes a shortcut from
// another action.
class ShortcutsDialog {
public:
  void draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open);
  bool capturing() const { return !capturing_.empty(); } // the next keys become a shortcut and run no action

private:
  void stop();
  void capture(const std::vector<Action>& actions, Editor& editor);
  void draw_row(const std::vector<Action>& actions, const Action& action, Editor& editor,
                const Graphics& graphics);
  void draw_conflict(const std::vector<Action>& actions, Editor& editor);

  std::string filter_;
  std::string capturing_; // id of the action whose keys are to be pressed
  std::string taken_;     // the pressed shortcut, if another action has it
};

} // namespace hydrascope::app
