#include "app/shell/key_names.h"

#include <algorithm>
#include <array>
#include <utility>

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

ImGuiKey nth(ImGuiKey first, int n) { return static_cast<ImGuiKey>(first + n); }

ImGuiKey key_named(std::string_view name) {
  if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') return nth(ImGuiKey_A, name[0] - 'A');
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') return nth(ImGuiKey_0, name[0] - '0');
  for (int number = 1; number <= function_keys; ++number) {
    if (name == "F" + std::to_string(number)) return nth(ImGuiKey_F1, number - 1);
  }
  const auto* const found = std::ranges::find(named_keys, name, &std::pair<const char*, ImGuiKey>::first);
  return found == named_keys.end() ? ImGuiKey_None : found->second;
}

std::string name_of(ImGuiKey key) {
  if (key >= ImGuiKey_A && key <= ImGuiKey_Z) return {static_cast<char>('A' + (key - ImGuiKey_A))};
  if (key >= ImGuiKey_0 && key <= ImGuiKey_9) return {static_cast<char>('0' + (key - ImGuiKey_0))};
  if (key >= ImGuiKey_F1 && key < nth(ImGuiKey_F1, function_keys)) {
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
  const ImGuiKey key = key_named(shortcut);
  return key == ImGuiKey_None ? 0 : chord | key;
}

std::string shortcut_text(ImGuiKeyChord chord) {
  if (chord == (ImGuiMod_Shift | ImGuiKey_Slash)) return "?";
  const std::string key = name_of(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_));
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
  if (key >= ImGuiKey_0 && key <= ImGuiKey_9) all.push_back(held | nth(ImGuiKey_Keypad0, key - ImGuiKey_0));
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
    if (name_of(key).empty() || !ImGui::IsKeyPressed(key, false)) continue;
    return ImGui::GetIO().KeyMods | key;
  }
  return 0;
}

} // namespace hydrascope::app
