#include "app/actions/tour.h"

#include <algorithm>
#include <array>
#include <vector>

#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

bool input_changed(const TourState& begin, const Editor& editor) {
  const Document& start = begin.start;
  const auto& before = start.scene().input;
  const auto& now = editor.document().scene().input;
  return now && (!before || start.kind != editor.document().kind || !same_input(*before, *now));
}

// In the last layer only the [CLS] token influences the prediction, so the map of any patch is empty there.
void show_maps_of_patches(Editor& editor) {
  const Scene& scene = editor.document().scene();
  if (!scene.model || scene.layer + 1 < scene.model->layers) return;
  if (scene.layer > 0) return select_layer(editor, scene.layer - 1);
  change_view(editor, "Map: attention", [](ViewOptions& view) { view.maps = {MapKind::attention}; });
}

bool map_of_query_seen(const TourState&, const Editor& editor) {
  const Scene& scene = editor.document().scene();
  return !scene.default_query && scene.query.has_value() &&
         editor.status().focus_map_seen == editor.revision();
}

constexpr int replaced_together = 2; // layers of the bundled adapters that the tour names

void replace_last_layers(Editor& editor) {
  apply_preset(editor, Strategy::back, replaced_together, {.name = "hydra-cosine", .parameters = {}});
}

// One layer alone would run untrained: the bundled adapters were trained for the last two together.
bool last_layers_replaced(const TourState& begin, const Editor& editor) {
  const Document& now = editor.document();
  if (begin.start.kind != now.kind || begin.start.scene().schedules == now.scene().schedules) return false;
  const std::vector<KernelSpec>& layers = edited_schedule(now).layers;
  const auto last = static_cast<std::size_t>(replaced_together);
  return layers.size() >= last &&
         std::all_of(layers.end() - replaced_together, layers.end(), [&](const KernelSpec& kernel) {
           return kernel == layers.back() && kernel.name != "softmax";
         });
}

bool compared(const TourState&, const Editor& editor) { return editor.document().view.shown != Shown::a; }

bool looked_into_a_head(const TourState& begin, const Editor& editor) {
  const Document& start = begin.start;
  const Scene &before = start.scene(), &now = editor.document().scene();
  return before.head != now.head || before.key != now.key || before.comparison != now.comparison ||
         start.view.all_heads != editor.document().view.all_heads;
}

bool sentence_open(const TourState&, const Editor& editor) {
  return editor.document().kind == InputKind::text;
}

bool trained(const TourState&, const Editor& editor) {
  return editor.training.active() ? editor.training.progress.total_step > 0
                                  : editor.training.state == TrainingState::finished;
}

bool exported(const TourState& begin, const Editor& editor) {
  return editor.status().written_figures > begin.written_figures;
}

constexpr std::array<TourStep, 9> all_steps = {{
    {"Open a picture", "Click one of the examples, press {file.open}, or drop a photograph on the window.",
     "input", input_changed},
    {"See what counts",
     "The map marks the patches that speak for the predicted class. Point at one: it lights up in every "
     "panel. "
     "Click one to see what it attends to in the selected layer; click it again to go back.",
     "focus", map_of_query_seen, show_maps_of_patches},
    {"Swap the kernel of two layers",
     "Rows are layers, columns are attention kernels: a click on a dot sets a layer's kernel. Replace the "
     "last "
     "two layers together by hydra-cosine: the trained parameters that come with the program are for both.",
     "kernels", last_layers_replaced, nullptr, TourShortcut{"Replace both", replace_last_layers}},
    {"Compare with softmax",
     "What you changed is A; B still is softmax in every layer. Press {view.side_b} for B, {view.difference} "
     "for A − B, {view.all_sides} for all three side by side, {view.side_a} to come back.",
     "focus", compared},
    {"Look into a head",
     "The layer's weights under several kernels, on the same queries and keys. The wheel zooms, pointing "
     "tells "
     "numbers, a click pins a pair of tokens. Choose another head, or show all of them.",
     "weights", looked_into_a_head},
    {"Type a sentence", "Choose Sentence, and write: the model runs while you type.", "input", sentence_open},
    {"Train a kernel",
     "Hedgehog's feature maps can learn softmax's weights. Press Start: within half a minute they do, on "
     "sentences or pictures that come with the program. Curves and weights follow.",
     "training", trained},
    {"Export a figure",
     "Right-click any panel and export its figure as PNG, SVG or PDF. The whole list is under File › Export.",
     "focus", exported},
    {"Everything else",
     "{view.palette} finds every action by a few letters of its name, {help.sheet} lists shortcuts and "
     "gestures, and {edit.undo} takes anything back. This tour is under Help.",
     "", nullptr},
}};

} // namespace

std::span<const TourStep> tour_steps() { return all_steps; }

std::string tour_text(const TourStep& step, const std::vector<Action>& actions) {
  std::string text;
  std::string_view rest = step.text;
  while (!rest.empty()) {
    const std::size_t open = rest.find('{');
    text += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    const Action* action = find_action(actions, rest.substr(open + 1, close - open - 1));
    if (action != nullptr)
      text += action->shortcut.empty() ? action->menu + " › " + action->label : action->shortcut;
    rest.remove_prefix(close + 1);
  }
  return text;
}

void go_to_tour_step(Editor& editor, std::optional<TourState>& tour, std::size_t step) {
  if (step >= all_steps.size()) return end_tour(editor, tour);
  if (const auto prepare = all_steps.at(step).prepare; prepare != nullptr) prepare(editor);
  tour = TourState{.step = step,
                   .start = editor.document(),
                   .written_figures = editor.status().written_figures,
                   .done = false};
  const std::string panel = all_steps.at(step).panel;
  if (panel.empty()) return;
  if (!editor.panel_open(panel)) show_panel(editor, panel, panel, true);
  editor.emit(BringToFront{panel});
}

void end_tour(Editor& editor, std::optional<TourState>& tour) {
  tour.reset();
  editor.change_settings([](Settings& settings) { settings.tour_seen = true; });
}

} // namespace hydrascope::app
