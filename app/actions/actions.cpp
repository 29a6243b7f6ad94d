#include "app/actions/actions.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "app/actions/action_table.h"
#include "app/document/gallery.h"
#include "app/document/session_edits.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

void add_lesson_actions(ActionTable& table) {
  add_action(table, "help.gallery", "Gallery…", "Help", "",
             [](Editor& editor) { editor.emit(ShowOverlay{Overlay::gallery}); });
  for (const GalleryEntry& entry : gallery().entries) {
    add_action(table, "help.lesson." + entry.id, entry.lesson.title, "Help/Lessons", "",
               [file = entry.session](Editor& editor) { open_session(editor, file); });
  }
}

void add_help_actions(ActionTable& table) {
  add_lesson_actions(table);
  add_action(table, "help.tour", "Guided tour", "Help", "",
             [](Editor& editor) { editor.emit(GoToTourStep{0}); });
  add_action(table, "help.sheet", "Shortcuts and gestures", "Help", "?",
             [](Editor& editor) { editor.emit(ToggleOverlay{Overlay::help}); });
  add_action(table, "help.about", "About Hydrascope", "Help", "",
             [](Editor& editor) { editor.emit(ShowOverlay{Overlay::about}); });
}

// Actions, by their ids, and submenus above which a menu has a line.
constexpr std::array<std::string_view, 29> group_beginnings = {
    "file.open",          "file.open_folder",     "file.wrong_first",    "file.close_folder",
    "file.forget_recent", "file.sentence.0",      "File/Export",         "file.export_everything",
    "file.quit",          "edit.show_image",      "edit.query_default",  "edit.copy",
    "edit.hide_token",    "edit.mute_head",       "Edit/Preferences",    "view.larger",
    "view.fade",          "file.reopen_at_start", "help.shortcuts",      "View/Panels",
    "view.save_layout",   "view.palette",         "model.time_passes",   "Model/Training",
    "training.pause",     "Model/Adapters",       "model.adapters.open", "help.sheet",
    "help.about"};

void begin_groups(ActionTable& table) {
  for (const std::string_view name : group_beginnings) {
    const auto found = std::ranges::find_if(
        table, [&](const Action& action) { return action.id == name || action.menu == name; });
    if (found != table.end()) found->begins_group = true;
  }
}

// Moves the default shortcuts to `default_shortcut` and applies the user's.
void apply_shortcuts(ActionTable& table, const Settings& settings) {
  for (Action& action : table) {
    action.default_shortcut = action.shortcut;
    const auto own = settings.shortcuts.find(action.id);
    if (own != settings.shortcuts.end()) action.shortcut = own->second;
  }
}

} // namespace

Availability with_model(const Editor& editor) {
  return {editor.document().scene().model != nullptr, "no model is open"};
}

Availability pictures_can_be_copied(const Editor& editor) {
  const std::string& obstacle = editor.status().no_picture_clipboard;
  return {obstacle.empty(), obstacle};
}

Action& add_action(ActionTable& table, std::string id, std::string label, std::string menu,
                   std::string shortcut, std::function<void(Editor&)> run,
                   std::function<Availability(const Editor&)> enabled) {
  table.push_back({std::move(id), std::move(label), std::move(menu), std::move(shortcut), std::move(enabled),
                   std::move(run)});
  return table.back();
}

std::vector<Action> make_actions(const std::vector<PanelName>& panels, const Settings& settings,
                                 const DeviceList* devices) {
  ActionTable table;
  add_file_actions(table, panels, settings);
  add_edit_actions(table);
  add_preference_actions(table);
  add_view_actions(table, panels, settings);
  add_model_actions(table, devices);
  add_help_actions(table);
  begin_groups(table);
  apply_shortcuts(table, settings);
  return table;
}

const Action* find_action(const std::vector<Action>& actions, std::string_view id) {
  const auto found = std::ranges::find(actions, id, &Action::id);
  return found == actions.end() ? nullptr : &*found;
}

bool run_action(const std::vector<Action>& actions, std::string_view id, Editor& editor) {
  const Action* action = find_action(actions, id);
  if (action == nullptr) return false;
  const Availability availability = action->enabled(editor);
  if (!availability.ok) {
    editor.say(Severity::note, action->label + ": " + availability.reason);
    return false;
  }
  action->run(editor);
  return true;
}

bool matches(const Action& action, std::string_view query) {
  const std::string text = lower_case(action.menu + " " + action.label);
  std::istringstream words{lower_case(query)};
  for (std::string word; words >> word;) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

const Action* action_with_shortcut(const ActionTable& table, std::string_view shortcut,
                                   std::string_view except) {
  if (shortcut.empty()) return nullptr;
  const auto found = std::ranges::find_if(
      table, [&](const Action& action) { return action.shortcut == shortcut && action.id != except; });
  return found == table.end() ? nullptr : &*found;
}

void set_shortcut(Editor& editor, const ActionTable& table, std::string_view id,
                  const std::string& shortcut) {
  editor.change_settings([&](Settings& settings) {
    const auto set = [&](const Action& action, const std::string& text) {
      if (text == action.default_shortcut) {
        settings.shortcuts.erase(action.id);
      } else {
        settings.shortcuts[action.id] = text;
      }
    };
    if (const Action* taken = action_with_shortcut(table, shortcut, id)) set(*taken, "");
    if (const Action* action = find_action(table, id)) set(*action, shortcut);
  });
}

} // namespace hydrascope::app
