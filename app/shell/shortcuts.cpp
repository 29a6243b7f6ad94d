#include "app/shell/shortcuts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

constexpr std::array<std::pair<const char*, ImGuiKey>, 29> named_keys = {{
    {"Up", ImGuiKey_UpArrow},
    {"Down", ImGuiKey_DownArrow},
    {"Left", ImGuiKey_LeftArrow},
    {"Right", ImGuiKey_RightArrow},
    {"Escape", ImGuiKey_Escape},
    {"Enter", ImGuiKey_Enter},
    {"Space", ImGuiKey_Space},
    {"Tab", ImGuiKey_Tab},
    {"Backspace", ImGuiKey_Backspace},
    {"Delete", ImGuiKey_Delete},
    {"Insert", ImGuiKey_Insert},
    {"Home", ImGuiKey_Home},
    {"End", ImGuiKey_End},
    {"PageUp", ImGuiKey_PageUp},
    {"PageDown", ImGuiKey_PageDown},
    {"=", ImGuiKey_Equal},
    {"-", ImGuiKey_Minus},
    {",", ImGuiKey_Comma},
    {".", ImGuiKey_Period},
    {"/", ImGuiKey_Slash},
    {";", ImGuiKey_Semicolon},
    {"'", ImGuiKey_Apostrophe},
    {"[", ImGuiKey_LeftBracket},
    {"]", ImGuiKey_RightBracket},
    {"\\", ImGuiKey_Backslash},
    {"`", ImGuiKey_GraveAccent},
    {"Keypad*", ImGuiKey_KeypadMultiply},
    {"Keypad/", ImGuiKey_KeypadDivide},
    {"Pause", ImGuiKey_Pause},
}};

constexpr std::array<std::pair<const char*, ImGuiKey>, 4> modifiers = {
    {{"Ctrl", ImGuiMod_Ctrl}, {"Shift", ImGuiMod_Shift}, {"Alt", ImGuiMod_Alt}, {"Super", ImGuiMod_Super}}};

constexpr int function_keys = 12;

ImGuiKey nth_key(ImGuiKey first, int n) { return static_cast<ImGuiKey>(first + n); }

ImGuiKey key_by_name(std::string_view name) {
  if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') return nth_key(ImGuiKey_A, name[0] - 'A');
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') return nth_key(ImGuiKey_0, name[0] - '0');
  for (int number = 1; number <= function_keys; ++number) {
    if (name == "F" + std::to_string(number)) return nth_key(ImGuiKey_F1, number - 1);
  }
  const auto* const found = std::ranges::find(named_keys, name, &std::pair<const char*, ImGuiKey>::first);
  return found == named_keys.end() ? ImGuiKey_None : found->second;
}

std::string key_name(ImGuiKey key) {
  if (key >= ImGuiKey_A && key <= ImGuiKey_Z) return {static_cast<char>('A' + (key - ImGuiKey_A))};
  if (key >= ImGuiKey_0 && key <= ImGuiKey_9) return {static_cast<char>('0' + (key - ImGuiKey_0))};
  if (key >= ImGuiKey_F1 && key < nth_key(ImGuiKey_F1, function_keys)) {
    return "F" + std::to_string(key - ImGuiKey_F1 + 1);
  }
  const auto* const found = std::ranges::find(named_keys, key, &std::pair<const char*, ImGuiKey>::second);
  return found == named_keys.end() ? std::string() : found->first;
}

} // namespace

ImGuiKeyChord chord_of(std::string_view shortcut) {
  if (shortcut == "?") return ImGuiMod_Shift | ImGuiKey_Slash;
  ImGuiKeyChord chord = 0;
  while (true) {
    const auto* const modifier = std::ranges::find_if(modifiers, [&](const auto& each) {
      const std::string_view name = each.first;
      return shortcut.size() > name.size() && shortcut.starts_with(name) && shortcut[name.size()] == '+';
    });
    if (modifier == modifiers.end()) break;
    chord |= modifier->second;
    shortcut.remove_prefix(std::string_view(modifier->first).size() + 1);
  }
  const ImGuiKey key = key_by_name(shortcut);
  return key == ImGuiKey_None ? 0 : chord | key;
}

std::string shortcut_text(ImGuiKeyChord chord) {
  if (chord == (ImGuiMod_Shift | ImGuiKey_Slash)) return "?";
  const std::string key = key_name(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_));
  if (key.empty()) return {};
  std::string text;
  for (const auto& [name, modifier] : modifiers) {
    if ((chord & modifier) != 0) text += std::string(name) + "+";
  }
  return text + key;
}

std::vector<ImGuiKeyChord> with_alternatives(ImGuiKeyChord chord) {
  std::vector<ImGuiKeyChord> all = {chord};
  const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
  const ImGuiKeyChord held = chord & ImGuiMod_Mask_;
  if (key >= ImGuiKey_0 && key <= ImGuiKey_9)
    all.push_back(held | nth_key(ImGuiKey_Keypad0, key - ImGuiKey_0));
  if (key == ImGuiKey_Minus) all.push_back(held | ImGuiKey_KeypadSubtract);
  if (key == ImGuiKey_Enter) all.push_back(held | ImGuiKey_KeypadEnter);
  if (key == ImGuiKey_Equal) {
    all.push_back(held | ImGuiKey_KeypadAdd);
    all.push_back(held | ImGuiMod_Shift | ImGuiKey_Equal);
  }
  return all;
}

ImGuiKeyChord pressed_chord() {
  for (int number = ImGuiKey_NamedKey_BEGIN; number < ImGuiKey_NamedKey_END; ++number) {
    const auto key = static_cast<ImGuiKey>(number);
    if (key_name(key).empty() || !ImGui::IsKeyPressed(key, false)) continue;
    return ImGui::GetIO().KeyMods | key;
  }
  return 0;
}

namespace {

// Whether a focused text field handles the chord: all without Ctrl or Alt, and the commands of the field
// itself.
bool handled_by_text_field(const Action& action, ImGuiKeyChord chord) {
  if (!ImGui::GetIO().WantTextInput) return false;
  const bool held = (chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) != 0;
  const bool field_command = action.id == "edit.undo" || action.id == "edit.redo" ||
                             action.id == "edit.copy" || action.id == "edit.paste";
  return !held || field_command;
}

// Whether a menu or list is open, which handles the keys. Escape closes it, which Dear ImGui does only with
// its own keyboard navigation.
bool handled_by_popup() {
  const int open = ImGui::GetCurrentContext()->OpenPopupStack.Size;
  if (open == 0) return false;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) ImGui::ClosePopupToLevel(open - 1, true);
  return true;
}

} // namespace

void run_shortcuts(const std::vector<Action>& actions, Editor& editor) {
  if (handled_by_popup()) return;
  for (const Action& action : actions) {
    const ImGuiKeyChord chord = chord_of(action.shortcut);
    if (chord == 0 || handled_by_text_field(action, chord)) continue;
    const auto chords = with_alternatives(chord);
    const bool pressed =
        std::ranges::any_of(chords, [](ImGuiKeyChord each) { return ImGui::IsKeyChordPressed(each); });
    if (pressed && action.enabled(editor).ok) {
      action.run(editor);
      return;
    }
  }
}

void ShortcutsDialog::stop() {
  capturing_.clear();
  taken_.clear();
}

void ShortcutsDialog::capture(const std::vector<Action>& actions, Editor& editor) {
  if (capturing_.empty() || !taken_.empty()) return;
  const ImGuiKeyChord chord = pressed_chord();
  if (chord == 0) return;
  if (chord == ImGuiKey_Escape) return stop();
  const std::string shortcut = shortcut_text(chord);
  if (action_with_shortcut(actions, shortcut, capturing_) != nullptr) {
    taken_ = shortcut; // the user decides
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
  const float baseline = ImGui::GetFontBaked()->Ascent;
  ImGui::PushFont(graphics.fonts().mono, theme::size_small);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::round(baseline - ImGui::GetFontBaked()->Ascent));
  ImGui::AlignTextToFramePadding();
  const std::string shown = here ? (taken_.empty() ? "press keys…" : taken_) : action.shortcut;
  ImGui::TextColored(here ? theme::amber : theme::accent, "%s", shown.c_str());
  ImGui::PopFont();
  ImGui::TableNextColumn();
  if (here) {
    if (ImGui::Button("Cancel")) stop();
  } else {
    if (ImGui::Button("Change")) {
      capturing_ = action.id;
      taken_.clear();
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
  const Action* taken = action_with_shortcut(actions, taken_, capturing_);
  const Action* here = find_action(actions, capturing_);
  if (taken == nullptr || here == nullptr) return stop();
  ImGui::PushTextWrapPos(0);
  ImGui::TextColored(theme::amber, "%s is used by “%s”.", taken_.c_str(), taken->label.c_str());
  ImGui::PopTextWrapPos();
  if (ImGui::Button("Use it here instead")) {
    set_shortcut(editor, actions, capturing_, taken_);
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
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize(
      {std::min(720.0f, viewport->WorkSize.x - 32), std::min(560.0f, viewport->WorkSize.y - 32)},
      ImGuiCond_Appearing);
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
    if (!taken_.empty()) draw_conflict(actions, editor);
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
