// Shortcuts between their written form ("Ctrl+Shift+O") and Dear ImGui's key chords.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace hydrascope::app {

// 0 if it names no key.
ImGuiKeyChord chord_of(std::string_view shortcut);
// The written form; empty for a chord without a key that can be named.
std::string shortcut_text(ImGuiKeyChord chord);

// What does the same as this chord: keys of the number pad; + for =, which most keyboards have on one key.
std::vector<ImGuiKeyChord> with_alternatives(ImGuiKeyChord chord);

// The chord that is being pressed in this frame, 0 if none. Modifiers alone are none.
ImGuiKeyChord pressed_chord();

} // namespace hydrascope::app
