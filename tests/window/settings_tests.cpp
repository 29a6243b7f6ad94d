// The settings file, and the dialog that changes shortcuts.
#include <fstream>

#include "app/document/settings.h"
#include "app/shell/shortcuts.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

void changes_are_written(ImGuiTestContext* context) {
  start_over(context);
  const fs::path file = scratch_file("written.json");
  Editor editor;
  SettingsFile settings_file(file, editor);
  settings_file.save(editor);
  IM_CHECK(!fs::exists(file)); // nothing has changed
  editor.change_settings([](Settings& settings) { settings.theme = ThemeChoice::light; });
  settings_file.save(editor);
  IM_CHECK(load_settings(file).settings.theme == ThemeChoice::light);

  Editor failing;
  SettingsFile nowhere("/proc/none/settings.json", failing);
  failing.change_settings([](Settings& settings) { settings.fade = false; });
  nowhere.save(failing);
  nowhere.save(failing);
  IM_CHECK_EQ(failing.messages().size(), static_cast<std::size_t>(1));
  IM_CHECK_EQ(failing.messages().front().count, 1); // said once, not at every frame
}

void keys_have_names(ImGuiTestContext*) {
  for (const char* text :
       {"Ctrl+Shift+O", "?", "Up", "Ctrl+=", "Alt+F4", "Super+K", "7", "Shift+Escape", "Ctrl+-"}) {
    const ImGuiKeyChord chord = chord_of(text);
    IM_CHECK_NE(chord, 0);
    IM_CHECK_STR_EQ(shortcut_text(chord).c_str(), text);
  }
  IM_CHECK_EQ(chord_of(""), 0);
  IM_CHECK_EQ(chord_of("Ctrl+Nonsense"), 0);
  // Every shortcut of the table names keys, and no two actions share one.
  std::map<std::string, std::string> taken;
  for (const Action& action : application().actions()) {
    if (action.shortcut.empty()) continue;
    IM_CHECK_NE(chord_of(action.shortcut), 0);
    IM_CHECK_STR_EQ(taken[action.shortcut].c_str(), "");
    taken[action.shortcut] = action.id;
  }
}

const std::string& shortcut_of(const char* id) { return find_action(application().actions(), id)->shortcut; }

void press_into(ImGuiTestContext* context, const char* id, ImGuiKeyChord chord) {
  context->ItemClick((std::string("**/") + id + "/Change").c_str());
  context->Yield(2);
  IM_CHECK(context->ItemExists((std::string("**/") + id + "/Cancel").c_str()));
  context->KeyPress(chord);
  context->Yield(2);
}

void shortcuts_change(ImGuiTestContext* context) {
  start_over(context);
  application().overlays()[Overlay::shortcuts] = true;
  context->Yield(2);
  context->SetRef("//###shortcuts");
  context->ItemInputValue("##filter", "focus map");
  press_into(context, "view.sign", ImGuiMod_Ctrl | ImGuiMod_Alt | ImGuiKey_G);
  IM_CHECK(!context->ItemExists("**/view.sign/Cancel"));
  IM_CHECK_STR_EQ(shortcut_of("view.sign").c_str(), "Ctrl+Alt+G");
  IM_CHECK(editor().settings().shortcuts.at("view.sign") == "Ctrl+Alt+G");

  // Taken: named, and moved only when the user says so.
  press_into(context, "view.interpolation", ImGuiMod_Ctrl | ImGuiMod_Alt | ImGuiKey_G);
  IM_CHECK_STR_EQ(shortcut_of("view.interpolation").c_str(), "I");
  context->ItemClick("Use it here instead");
  context->Yield(2);
  IM_CHECK_STR_EQ(shortcut_of("view.interpolation").c_str(), "Ctrl+Alt+G");
  IM_CHECK_STR_EQ(shortcut_of("view.sign").c_str(), "");
  context->ItemClick("**/view.sign/Reset");
  context->Yield(2);
  IM_CHECK_STR_EQ(shortcut_of("view.sign").c_str(), "S");

  // While keys are being pressed into the dialog they do nothing else; Escape leaves all as it was.
  press_into(context, "view.sign", ImGuiKey_Escape);
  IM_CHECK(!context->ItemExists("**/view.sign/Cancel"));
  IM_CHECK_STR_EQ(shortcut_of("view.sign").c_str(), "S");
  application().overlays()[Overlay::shortcuts] = false;
  context->Yield(2);

  const Interpolation before = document().view.look.interpolation;
  context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Alt | ImGuiKey_G);
  context->Yield(2);
  const Interpolation after = document().view.look.interpolation;
  IM_CHECK(after != before);
  context->KeyPress(ImGuiKey_I); // no longer its key
  context->Yield(2);
  IM_CHECK(document().view.look.interpolation == after);
  start_over(context);
  IM_CHECK_STR_EQ(shortcut_of("view.interpolation").c_str(), "I");
}

} // namespace

void register_settings_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "settings", "changes_are_written")->TestFunc = changes_are_written;
  IM_REGISTER_TEST(engine, "settings", "keys_have_names")->TestFunc = keys_have_names;
  IM_REGISTER_TEST(engine, "settings", "shortcuts_change")->TestFunc = shortcuts_change;
}

} // namespace hydrascope::app::window_tests
