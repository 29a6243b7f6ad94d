#include "app/actions/actions.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "app/actions/head_actions.h"
#include "app/actions/input_actions.h"
#include "app/actions/session_actions.h"
#include "app/actions/training_actions.h"
#include "app/actions/window_actions.h"
#include "app/document/edits.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

Availability always(const Editor& /*editor*/) { return {}; }

Action& add(ActionTable& table, std::string id, std::string label, std::string menu, std::string shortcut,
            std::function<void(Editor&)> run, std::function<Availability(const Editor&)> enabled) {
  table.push_back({std::move(id), std::move(label), std::move(menu), std::move(shortcut), std::move(enabled),
                   std::move(run)});
  return table.back();
}

namespace {

namespace fs = std::filesystem;

Availability with_model(const Editor& editor) {
  if (editor.document().scene().model) return {};
  return {false, "no model is open"};
}

void add_file_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings) {
  add_session_actions(table);
  add(table, "file.open", "Open picture or text…", "File", "Ctrl+O",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_file}); });
  add(table, "file.open_model", "Open model folder…", "File", "Ctrl+Shift+O",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_model}); });
  add(table, "file.get_model", "Get a model…", "File", "",
      [](Editor& editor) { editor.emit(ShowOverlay{Overlay::get_model}); });
  add_folder_actions(table);
  add_recent_actions(table, settings);
  for (const fs::path& picture : example_pictures()) {
    const std::string name = picture.stem().string();
    add(table, "file.example." + name, "Example: " + name, "File/Examples", "",
        [picture](Editor& editor) { open_path(editor, picture); });
  }
  int number = 0;
  for (const std::string& sentence : example_sentences()) {
    add(table, fmt::format("file.sentence.{}", number++), "Example: “" + sentence + "”", "File/Examples", "",
        [sentence](Editor& editor) { open_text(editor, sentence); });
  }
  for (const PanelName& panel : panels) {
    if (!panel.exports) continue;
    add(
        table, "file.export." + panel.id, "Export " + panel.title + "…", "File/Export",
        panel.id == "focus" ? "Ctrl+E" : (panel.id == "weights" ? "Ctrl+Shift+E" : ""),
        [id = panel.id](Editor& editor) { editor.emit(ExportFigure{.panel = id, .file = std::nullopt}); },
        with_model);
  }
  add(
      table, "file.export_everything", "Export everything open…", "File/Export", "",
      [](Editor& editor) { editor.emit(ExportEverything{}); }, with_model);
  add_copy_actions(table, panels);
  add(table, "file.quit", "Quit", "File", "Ctrl+Q", [](Editor& editor) { editor.emit(Quit{}); });
}

void add_edit_actions(ActionTable& table) {
  add(
      table, "edit.undo", "Undo", "Edit", "Ctrl+Z", [](Editor& editor) { editor.undo(); },
      [](const Editor& editor) {
        return Availability{editor.history().can_undo(), "nothing has been changed yet"};
      });
  add(
      table, "edit.redo", "Redo", "Edit", "Ctrl+Y", [](Editor& editor) { editor.redo(); },
      [](const Editor& editor) {
        return Availability{editor.history().can_redo(), "nothing has been undone"};
      });
  add(
      table, "edit.show_image", "Show the photograph", "Edit", "Ctrl+1",
      [](Editor& editor) { show_kind(editor, InputKind::image); },
      [](const Editor& editor) {
        return Availability{editor.document().scene_of(InputKind::image).input.has_value(),
                            "no picture is open"};
      });
  add(
      table, "edit.show_text", "Show the sentence", "Edit", "Ctrl+2",
      [](Editor& editor) { show_kind(editor, InputKind::text); },
      [](const Editor& editor) {
        return Availability{editor.document().scene_of(InputKind::text).input.has_value(),
                            "no sentence is open"};
      });
  add(table, "edit.query_default", "Query: what the target reads", "Edit", "Escape", select_default_query,
      [](const Editor& editor) {
        return Availability{!editor.document().scene().default_query, "it is chosen already"};
      });
  add(
      table, "edit.query_all", "Query: all tokens", "Edit", "",
      [](Editor& editor) { select_query(editor, std::nullopt); }, with_model);
}

void step_head(Editor& editor, int by) {
  const Scene& scene = editor.document().scene();
  select_head(editor, {.head = scene.head.head.value_or(0) + by, .fusion = HeadFusion::mean});
}

void add_view_actions(ActionTable& table, const std::vector<PanelName>& panels) {
  add(
      table, "view.layer_up", "Layer above", "View/Selection", "Up",
      [](Editor& editor) { select_layer(editor, editor.document().scene().layer - 1); }, with_model);
  add(
      table, "view.layer_down", "Layer below", "View/Selection", "Down",
      [](Editor& editor) { select_layer(editor, editor.document().scene().layer + 1); }, with_model);
  add(
      table, "view.head_left", "Head before", "View/Selection", "Left",
      [](Editor& editor) { step_head(editor, -1); }, with_model);
  add(
      table, "view.head_right", "Head after", "View/Selection", "Right",
      [](Editor& editor) { step_head(editor, 1); }, with_model);
  add(
      table, "view.head_mean", "Mean of heads", "View/Selection", "",
      [](Editor& editor) { select_head(editor, {.head = std::nullopt, .fusion = HeadFusion::mean}); },
      with_model);
  add(table, "view.sign", "Signed focus map", "View/Maps", "S", [](Editor& editor) {
    change_view(editor, "Signed map", [](ViewOptions& view) { view.with_sign = !view.with_sign; });
  });
  add(table, "view.interpolation", "Focus map: nearest, bilinear, bicubic", "View/Maps", "I",
      [](Editor& editor) {
        change_view(editor, "Interpolation", [](ViewOptions& view) {
          view.interpolation = static_cast<Interpolation>((static_cast<int>(view.interpolation) + 1) % 3);
        });
      });
  for (const MapKind kind : {MapKind::focus, MapKind::attention, MapKind::rollout}) {
    const std::string name = map_name(kind);
    add(
        table, "view.map." + name, "Show " + name, "View/Maps", "",
        [kind](Editor& editor) { toggle_map(editor, kind); },
        [kind](const Editor& editor) {
          const std::set<MapKind>& maps = editor.document().view.maps;
          return Availability{maps.size() > 1 || !maps.contains(kind), "it is the only map that is shown"};
        });
    table.back().checked = [kind](const Editor& editor) {
      return editor.document().view.maps.contains(kind);
    };
  }
  add(table, "view.logarithmic", "Logarithmic weights", "View/Maps", "L", [](Editor& editor) {
    change_view(editor, "Logarithmic weights",
                [](ViewOptions& view) { view.logarithmic = !view.logarithmic; });
  });
  add(table, "view.shared_scale", "Shared scale of weights", "View/Maps", "", [](Editor& editor) {
    change_view(editor, "Shared scale", [](ViewOptions& view) { view.shared_scale = !view.shared_scale; });
  });
  add(table, "view.value_weighted", "Value-weighted weights (‖α v W_o‖)", "View/Maps", "V",
      [](Editor& editor) {
        change_view(editor, "Value-weighted weights",
                    [](ViewOptions& view) { view.value_weighted = !view.value_weighted; });
      });
  add(table, "view.cividis", "Cividis colours", "View/Maps", "", [](Editor& editor) {
    change_view(editor, "Colours of the maps", [](ViewOptions& view) { view.cividis = !view.cividis; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.cividis; };
  add(table, "view.teacher_forced", "Teacher-forced (q, k of the softmax run)", "View/Maps", "T",
      [](Editor& editor) {
        change_view(editor, "Teacher-forced",
                    [](ViewOptions& view) { view.teacher_forced = !view.teacher_forced; });
      });
  add(table, "view.special_tokens", "Special tokens", "View/Tokens", "", [](Editor& editor) {
    change_view(editor, "Special tokens",
                [](ViewOptions& view) { view.tokens.special = !view.tokens.special; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.tokens.special; };
  add(table, "view.whole_words", "Whole words", "View/Tokens", "", [](Editor& editor) {
    change_view(editor, "Whole words",
                [](ViewOptions& view) { view.tokens.whole_words = !view.tokens.whole_words; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.tokens.whole_words; };
  add(table, "view.side_a", "Show A", "View/Compare", "A", [](Editor& editor) {
    change_view(editor, "Show A", [](ViewOptions& view) { view.shown = Shown::a; });
  });
  add(table, "view.side_b", "Show B", "View/Compare", "B", [](Editor& editor) {
    change_view(editor, "Show B", [](ViewOptions& view) { view.shown = Shown::b; });
  });
  add(table, "view.difference", "Show A − B", "View/Compare", "D", [](Editor& editor) {
    change_view(editor, "Show A − B", [](ViewOptions& view) { view.shown = Shown::difference; });
  });
  add(table, "view.all_sides", "Show A, B and A − B side by side", "View/Compare", "C", [](Editor& editor) {
    change_view(editor, "Show A, B and A − B", [](ViewOptions& view) { view.shown = Shown::all; });
  });
  add(table, "view.swap", "Swap A and B", "View/Compare", "X", swap_sides, with_model);
  for (const PanelName& panel : panels) {
    add(table, "view.panel." + panel.id, panel.title, "View/Panels", "", [panel](Editor& editor) {
      // One behind others comes to the front; what is seen goes.
      const bool opens = !editor.panel_open(panel.id) || !editor.status().panels_in_front.contains(panel.id);
      if (opens != editor.panel_open(panel.id)) show_panel(editor, panel.id, panel.title, opens);
      if (opens) editor.emit(BringToFront{panel.id});
    });
    table.back().checked = [id = panel.id](const Editor& editor) { return editor.panel_open(id); };
  }
  add(table, "view.palette", "Search actions…", "View", "Ctrl+P",
      [](Editor& editor) { editor.emit(ShowOverlay{Overlay::palette}); });
}

void add_model_actions(ActionTable& table) {
  for (const CatalogueEntry& entry : model_catalogue()) {
    add(table, "model.open." + entry.name, "Model: " + entry.name, "Model", "",
        [folder = entry.folder.string()](Editor& editor) { open_model(editor, folder); });
  }
  add(
      table, "model.adapters.automatic", "Adapters: automatic", "Model/Adapters", "",
      [](Editor& editor) { choose_adapters(editor, {}); }, with_model);
  table.back().checked = [](const Editor& editor) { return editor.document().scene().adapters.automatic; };
  add(
      table, "model.adapters.none", "Adapters: none", "Model/Adapters", "",
      [](Editor& editor) { choose_adapters(editor, {.automatic = false, .files = {}}); }, with_model);
  table.back().checked = [](const Editor& editor) {
    const AdapterChoice& choice = editor.document().scene().adapters;
    return !choice.automatic && choice.files.empty();
  };
  add(
      table, "model.adapters.open", "Open adapter…", "Model/Adapters", "",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_adapter}); }, with_model);
  int number = 0;
  for (const KernelInfo& info : kernel_infos()) {
    const KernelSpec spec{.name = info.name, .parameters = {}};
    ++number;
    add(
        table, "kernels.layer." + info.name, "This layer: " + info.name, "Model/Selected layer", "",
        [spec](Editor& editor) { set_layer_kernel(editor, editor.document().scene().layer, spec); },
        with_model);
    add(
        table, "kernels.compare." + info.name, "Compare with " + info.name, "Model/Compare weights with",
        number <= 9 ? std::to_string(number) : "",
        [spec](Editor& editor) { compare_kernel(editor, 1, spec); }, with_model);
  }
  add(
      table, "kernels.compare.layer", "Compare with the layer's own kernel", "Model/Compare weights with",
      "0", [](Editor& editor) { compare_kernel(editor, 1, std::nullopt); }, with_model);
  add(
      table, "kernels.default_parameters", "This layer: default parameters", "Model", "",
      [](Editor& editor) { reset_kernel_parameters(editor, editor.document().scene().layer, false); },
      [](const Editor& editor) {
        const Document& document = editor.document();
        if (!document.scene().model) return Availability{false, "no model is open"};
        const auto layer = static_cast<std::size_t>(document.scene().layer);
        return Availability{!edited_schedule(document).layers.at(layer).parameters.empty(),
                            "its kernel has them already"};
      });
  for (const KernelInfo& info : kernel_infos()) {
    const KernelSpec spec{.name = info.name, .parameters = {}};
    add(
        table, "kernels.all." + info.name, "All layers: " + info.name, "Model/All layers", "",
        [spec](Editor& editor) { set_all_kernels(editor, spec); }, with_model);
    if (info.exact_softmax) continue;
    add(
        table, "kernels.back2." + info.name, "Last two layers: " + info.name, "Model/Last two layers", "",
        [spec](Editor& editor) { apply_preset(editor, Strategy::back, 2, spec); }, with_model);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

} // namespace

std::vector<Action> make_actions(const std::vector<PanelName>& panels, const Settings& settings) {
  ActionTable table;
  add_file_actions(table, panels, settings);
  add_edit_actions(table);
  add_clipboard_actions(table);
  add_token_actions(table);
  add_head_actions(table);
  add_view_actions(table, panels);
  add_window_actions(table, panels, settings);
  add_run_actions(table);
  add_measuring_actions(table);
  add_training_actions(table);
  add_model_actions(table);
  add_help_actions(table);
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
  const std::string text = lower(action.menu + " " + action.label);
  std::istringstream words{lower(query)};
  for (std::string word; words >> word;) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

} // namespace hydrascope::app
