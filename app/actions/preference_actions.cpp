// Edit › Preferences: what is kept for every session.
#include "app/actions/action_table.h"
#include "app/document/editor.h"

namespace hydrascope::app {

namespace {

void add_themes(ActionTable& table) {
  struct Entry {
    const char *id, *label;
    ThemeChoice choice;
  };
  for (const Entry& entry : {Entry{"view.theme.follow", "Theme: system", ThemeChoice::follow},
                             Entry{"view.theme.dark", "Theme: dark", ThemeChoice::dark},
                             Entry{"view.theme.light", "Theme: light", ThemeChoice::light}}) {
    const auto run = [choice = entry.choice](Editor& editor) {
      editor.change_settings([&](Settings& settings) { settings.theme = choice; });
    };
    add_action(table, entry.id, entry.label, "Edit/Preferences", "", run).checked =
        [choice = entry.choice](const Editor& editor) { return editor.settings().theme == choice; };
  }
}

// Two key presses in one frame are two steps, so the scale chosen last counts, not the one in force.
double scale_of(const Editor& editor) { return editor.settings().scale.value_or(editor.status().scale); }

void step_scale(Editor& editor, int steps) {
  const double scale = stepped_scale(scale_of(editor), steps);
  editor.change_settings([&](Settings& settings) { settings.scale = scale; });
}

void add_scales(ActionTable& table) {
  add_action(
      table, "view.larger", "Larger text and controls", "Edit/Preferences",
      "Ctrl+=", [](Editor& editor) { step_scale(editor, 1); },
      [](const Editor& editor) {
        return Availability{scale_of(editor) < greatest_scale, "this is the largest"};
      });
  add_action(
      table, "view.smaller", "Smaller text and controls", "Edit/Preferences", "Ctrl+-",
      [](Editor& editor) { step_scale(editor, -1); },
      [](const Editor& editor) {
        return Availability{scale_of(editor) > least_scale, "this is the smallest"};
      });
  add_action(
      table, "view.reset_scale", "Default text size", "Edit/Preferences", "Ctrl+0",
      [](Editor& editor) { editor.change_settings([](Settings& settings) { settings.scale.reset(); }); },
      [](const Editor& editor) {
        return Availability{editor.settings().scale.has_value(), "it already has that size"};
      });
  add_action(table, "view.fade", "Fade changed maps in", "Edit/Preferences", "", [](Editor& editor) {
    editor.change_settings([](Settings& settings) { settings.fade = !settings.fade; });
  }).checked = [](const Editor& editor) { return editor.settings().fade; };
}

} // namespace

void add_preference_actions(ActionTable& table) {
  add_themes(table);
  add_scales(table);
  add_action(
      table, "file.reopen_at_start", "Start where the last session ended", "Edit/Preferences", "",
      [](Editor& editor) {
        editor.change_settings([](Settings& settings) { settings.reopen_last = !settings.reopen_last; });
      })
      .checked = [](const Editor& editor) { return editor.settings().reopen_last; };
  add_action(table, "help.shortcuts", "Change shortcuts…", "Edit/Preferences", "",
             [](Editor& editor) { editor.emit(ToggleOverlay{Overlay::shortcuts}); });
}

} // namespace hydrascope::app
