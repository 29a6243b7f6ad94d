#include "app/actions/window_actions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/document/layouts.h"

namespace hydrascope::app {

namespace {

void add_layout(ActionTable& table, const std::string& id, const std::string& layout,
                const std::string& title, const std::string& shortcut, const std::vector<PanelName>& panels) {
  const auto run = [layout, panels](Editor& editor) {
    choose_layout(editor, layout, closed_in_layout(layout, panels, editor.settings()));
  };
  add(table, id, "Layout: " + title, "View/Layout", shortcut, run).checked = [layout](const Editor& editor) {
    return editor.document().layout == layout;
  };
}

void add_layouts(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings) {
  for (const LayoutInfo& info : layout_infos()) {
    add_layout(table, "view.layout." + info.id, info.id, info.title, info.shortcut, panels);
  }
  for (const SavedLayout& own : settings.layouts) {
    add_layout(table, "view.layout.own." + own.name, std::string(own_layout_prefix) + own.name, own.name, "",
               panels);
  }
  for (const SavedLayout& own : settings.layouts) {
    add(table, "view.forget_layout." + own.name, "Forget layout " + own.name, "View/Layout/Forget", "",
        [name = own.name](Editor& editor) {
          editor.change_settings([&](Settings& kept) {
            std::erase_if(kept.layouts, [&](const SavedLayout& each) { return each.name == name; });
          });
        });
  }
  add(table, "view.save_layout", "Save layout as…", "View/Layout", "",
      [](Editor& editor) { editor.emit(ShowOverlay{Overlay::save_layout}); });
  add(table, "view.reset_layout", "Reset layout", "View/Layout", "", [panels](Editor& editor) {
    const std::string& layout = editor.document().layout;
    choose_layout(editor, layout, closed_in_layout(layout, panels, editor.settings()));
    editor.emit(ResetLayout{});
  });
}

void add_themes(ActionTable& table) {
  struct Entry {
    const char *id, *label;
    ThemeChoice choice;
  };
  for (const Entry& entry : {Entry{"view.theme.follow", "Theme: as the desktop", ThemeChoice::follow},
                             Entry{"view.theme.dark", "Theme: dark", ThemeChoice::dark},
                             Entry{"view.theme.light", "Theme: light", ThemeChoice::light}}) {
    const auto run = [choice = entry.choice](Editor& editor) {
      editor.change_settings([&](Settings& settings) { settings.theme = choice; });
    };
    add(table, entry.id, entry.label, "View/Appearance", "", run).checked =
        [choice = entry.choice](const Editor& editor) { return editor.settings().theme == choice; };
  }
}

// In force, or chosen since the last frame: two key presses in one frame are two steps.
double scale_of(const Editor& editor) { return editor.settings().scale.value_or(editor.status().scale); }

void step_scale(Editor& editor, int count) {
  const double scale = stepped_scale(scale_of(editor), count);
  editor.change_settings([&](Settings& settings) { settings.scale = scale; });
}

void add_scales(ActionTable& table) {
  add(
      table, "view.larger", "Larger text and controls", "View/Appearance",
      "Ctrl+=", [](Editor& editor) { step_scale(editor, 1); },
      [](const Editor& editor) {
        return Availability{scale_of(editor) < greatest_scale, "this is the largest"};
      });
  add(
      table, "view.smaller", "Smaller text and controls", "View/Appearance", "Ctrl+-",
      [](Editor& editor) { step_scale(editor, -1); },
      [](const Editor& editor) {
        return Availability{scale_of(editor) > least_scale, "this is the smallest"};
      });
  add(
      table, "view.reset_scale", "Size of text as the monitor has it", "View/Appearance", "Ctrl+0",
      [](Editor& editor) { editor.change_settings([](Settings& settings) { settings.scale.reset(); }); },
      [](const Editor& editor) {
        return Availability{editor.settings().scale.has_value(), "it is so already"};
      });
  add(table, "view.fade", "Fade changed maps in", "View/Appearance", "", [](Editor& editor) {
    editor.change_settings([](Settings& settings) { settings.fade = !settings.fade; });
  }).checked = [](const Editor& editor) { return editor.settings().fade; };
}

} // namespace

void add_window_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings) {
  add_layouts(table, panels, settings);
  add_themes(table);
  add_scales(table);
}

void add_run_actions(ActionTable& table) {
  add(
      table, "model.cancel", "Cancel what is running", "Model", "Ctrl+.",
      [](Editor& editor) {
        editor.emit(CancelRuns{});
        if (editor.scaling.running) editor.emit(StopScaling{});
        if (editor.folder.running) editor.emit(StopFolder{});
      },
      [](const Editor& editor) {
        return Availability{editor.status().computing, "nothing is running"};
      });
  add(
      table, "model.run_again", "Run again", "Model", "F5", [](Editor& editor) { editor.emit(RunAgain{}); },
      [](const Editor& editor) {
        return Availability{editor.status().stopped, "nothing was cancelled, and nothing has failed"};
      });
}

void add_measuring_actions(ActionTable& table) {
  const auto with_model = [](const Editor& editor) {
    return Availability{editor.document().scene().model != nullptr, "no model is open"};
  };
  add(
      table, "model.time_passes", "Run again ×10, for the times of the layers", "Model", "Shift+F5",
      [](Editor& editor) { editor.emit(TimePasses{}); }, with_model);
  add(
      table, "model.measure_scaling", "Measure time against N", "Model", "",
      [](Editor& editor) { editor.emit(MeasureScaling{}); }, with_model);
  add(
      table, "model.stop_scaling", "Stop measuring time against N", "Model", "",
      [](Editor& editor) { editor.emit(StopScaling{}); },
      [](const Editor& editor) {
        return Availability{editor.scaling.running, "it is not being measured"};
      });
}

void add_help_actions(ActionTable& table) {
  add(table, "help.sheet", "Shortcuts and gestures", "Help", "?",
      [](Editor& editor) { editor.emit(ToggleOverlay{Overlay::help}); });
  add(table, "help.tour", "Guided tour", "Help", "", [](Editor& editor) { editor.emit(GoToTourStep{1}); });
  add(table, "help.shortcuts", "Change shortcuts…", "Help", "",
      [](Editor& editor) { editor.emit(ToggleOverlay{Overlay::shortcuts}); });
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

void apply_shortcuts(ActionTable& table, const Settings& settings) {
  for (Action& action : table) {
    action.default_shortcut = action.shortcut;
    const auto own = settings.shortcuts.find(action.id);
    if (own != settings.shortcuts.end()) action.shortcut = own->second;
  }
}

} // namespace hydrascope::app
