// The View menu: selection, maps, comparison, panels, layouts, appearance.
#include <utility>

#include "app/actions/action_table.h"
#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

void step_head(Editor& editor, int by) {
  const Scene& scene = editor.document().scene();
  select_head(editor, {.head = scene.head.head.value_or(0) + by, .fusion = HeadFusion::mean});
}

void add_layout(ActionTable& table, const std::string& id, const std::string& layout,
                const std::string& title, const std::string& shortcut, const std::vector<PanelName>& panels) {
  const auto run = [layout, panels](Editor& editor) {
    choose_layout(editor, layout, closed_in_layout(layout, panels, editor.settings()));
  };
  add_action(table, id, "Layout: " + title, "View/Layout", shortcut, run).checked =
      [layout](const Editor& editor) { return editor.document().layout == layout; };
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
    add_action(table, "view.forget_layout." + own.name, "Delete layout " + own.name, "View/Layout/Forget", "",
               [name = own.name](Editor& editor) {
                 editor.change_settings([&](Settings& kept) {
                   std::erase_if(kept.layouts, [&](const SavedLayout& each) { return each.name == name; });
                 });
               });
  }
  add_action(table, "view.save_layout", "Save layout as…", "View/Layout", "",
             [](Editor& editor) { editor.emit(ShowOverlay{Overlay::save_layout}); });
  add_action(table, "view.reset_layout", "Reset layout", "View/Layout", "", [panels](Editor& editor) {
    const std::string& layout = editor.document().layout;
    choose_layout(editor, layout, closed_in_layout(layout, panels, editor.settings()));
    editor.emit(ResetLayout{});
  });
}

} // namespace

void add_view_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings) {
  add_action(
      table, "view.layer_up", "Layer above", "View/Selection", "Up",
      [](Editor& editor) { select_layer(editor, editor.document().scene().layer - 1); }, with_model);
  add_action(
      table, "view.layer_down", "Layer below", "View/Selection", "Down",
      [](Editor& editor) { select_layer(editor, editor.document().scene().layer + 1); }, with_model);
  add_action(
      table, "view.head_left", "Previous head", "View/Selection", "Left",
      [](Editor& editor) { step_head(editor, -1); }, with_model);
  add_action(
      table, "view.head_right", "Next head", "View/Selection", "Right",
      [](Editor& editor) { step_head(editor, 1); }, with_model);
  add_action(
      table, "view.head_mean", "Mean of heads", "View/Selection", "",
      [](Editor& editor) { select_head(editor, {.head = std::nullopt, .fusion = HeadFusion::mean}); },
      with_model);
  add_action(table, "view.sign", "Signed focus map", "View/Maps", "S", [](Editor& editor) {
    change_view(editor, "Signed map", [](ViewOptions& view) { view.with_sign = !view.with_sign; });
  });
  add_action(table, "view.interpolation", "Focus map smoothing: none, bilinear, bicubic", "View/Maps", "I",
             [](Editor& editor) {
               change_view(editor, "Interpolation", [](ViewOptions& view) {
                 view.look.interpolation =
                     static_cast<Interpolation>((static_cast<int>(view.look.interpolation) + 1) % 3);
               });
             });
  for (const MapKind kind : {MapKind::focus, MapKind::attention, MapKind::rollout}) {
    const std::string name = map_name(kind);
    add_action(
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
  add_action(table, "view.logarithmic", "Logarithmic weights", "View/Maps", "L", [](Editor& editor) {
    change_view(editor, "Logarithmic weights", [](ViewOptions& view) {
      view.logarithmic = !view.logarithmic;
      view.percentile = view.percentile && !view.logarithmic;
    });
  });
  add_action(table, "view.shared_scale", "Shared scale of weights", "View/Maps", "", [](Editor& editor) {
    change_view(editor, "Shared scale", [](ViewOptions& view) { view.shared_scale = !view.shared_scale; });
  });
  add_action(table, "view.value_weighted", "Value-weighted weights (‖α v W_o‖)", "View/Maps", "V",
             [](Editor& editor) {
               change_view(editor, "Value-weighted weights",
                           [](ViewOptions& view) { view.value_weighted = !view.value_weighted; });
             });
  add_action(table, "view.cividis", "Cividis colours", "View/Maps", "", [](Editor& editor) {
    change_view(editor, "Colours of the maps", [](ViewOptions& view) { view.cividis = !view.cividis; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.cividis; };
  add_action(table, "view.teacher_forced", "Softmax inputs (teacher-forced)", "View/Maps", "T",
             [](Editor& editor) {
               change_view(editor, "Softmax inputs",
                           [](ViewOptions& view) { view.teacher_forced = !view.teacher_forced; });
             });
  add_action(table, "view.special_tokens", "Special tokens", "View/Tokens", "", [](Editor& editor) {
    change_view(editor, "Special tokens",
                [](ViewOptions& view) { view.tokens.special = !view.tokens.special; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.tokens.special; };
  add_action(table, "view.whole_words", "Whole words", "View/Tokens", "", [](Editor& editor) {
    change_view(editor, "Whole words",
                [](ViewOptions& view) { view.tokens.whole_words = !view.tokens.whole_words; });
  });
  table.back().checked = [](const Editor& editor) { return editor.document().view.tokens.whole_words; };
  add_action(table, "view.side_a", "Show A", "View/Compare", "A", [](Editor& editor) {
    change_view(editor, "Show A", [](ViewOptions& view) { view.shown = Shown::a; });
  });
  add_action(table, "view.side_b", "Show B", "View/Compare", "B", [](Editor& editor) {
    change_view(editor, "Show B", [](ViewOptions& view) { view.shown = Shown::b; });
  });
  add_action(table, "view.difference", "Show A − B", "View/Compare", "D", [](Editor& editor) {
    change_view(editor, "Show A − B", [](ViewOptions& view) { view.shown = Shown::difference; });
  });
  add_action(table, "view.all_sides", "Show A, B and A − B side by side", "View/Compare", "C",
             [](Editor& editor) {
               change_view(editor, "Show A, B and A − B", [](ViewOptions& view) { view.shown = Shown::all; });
             });
  add_action(table, "view.swap", "Swap A and B", "View/Compare", "X", swap_sides, with_model);
  for (const PanelName& panel : panels) {
    add_action(table, "view.panel." + panel.id, panel.title, "View/Panels", "", [panel](Editor& editor) {
      // Closes a visible panel; one behind others comes to the front.
      const bool opens = !editor.panel_open(panel.id) || !editor.status().panels_in_front.contains(panel.id);
      if (opens != editor.panel_open(panel.id)) show_panel(editor, panel.id, panel.title, opens);
      if (opens) editor.emit(BringToFront{panel.id});
    });
    table.back().checked = [id = panel.id](const Editor& editor) { return editor.panel_open(id); };
  }
  add_layouts(table, panels, settings);
  add_action(table, "view.palette", "Search actions…", "View", "Ctrl+P",
             [](Editor& editor) { editor.emit(ShowOverlay{Overlay::palette}); });
}

} // namespace hydrascope::app
