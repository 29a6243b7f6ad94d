#include "app/actions/tour.h"

#include <algorithm>
#include <array>
#include <vector>

#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

// Whether the shown input is another than that of the same kind at the beginning of the step.
bool input_changed(const TourState& begin, const Editor& editor) {
  const auto& before = begin.start.scene_of(editor.document().kind).input;
  const auto& now = editor.document().scene().input;
  return now && (!before || !same_input(*before, *now));
}

bool picture_opened(const TourState& begin, const Editor& editor) {
  return editor.document().kind == InputKind::image && input_changed(begin, editor);
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

constexpr int replaced_together = 2; // layers of the bundled adapters that the tour names for pictures

// With the kernels that have bundled adapters for the example's model.
void replace_layers(Editor& editor) {
  const Scene& scene = editor.document().scene();
  if (editor.document().kind == InputKind::text)
    return apply_preset(editor, Strategy::back, scene.model ? scene.model->layers : 0,
                        {.name = "hedgehog", .parameters = {}});
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

bool sentence_typed(const TourState& begin, const Editor& editor) {
  return editor.document().kind == InputKind::text && input_changed(begin, editor);
}

bool text_written(const TourState& begin, const Editor& editor) {
  return editor.writing.edition != begin.writing_edition && !editor.writing.sides[0].tokens.empty();
}

void open_bundled_decoder(Editor& editor) {
  if (is_decoder(editor.document().scene_of(InputKind::text))) return show_kind(editor, InputKind::text);
  if (open_model(editor, "smollm2")) open_text(editor, example_beginnings().front());
}

// Since the beginning of the step, to the end or until the user stopped it.
bool trained(const TourState& begin, const Editor& editor) {
  const TrainingReport& report = editor.training;
  const bool ended = report.state == TrainingState::finished || report.state == TrainingState::stopped;
  return ended && report.progress.total_step > 0 && report.seconds != begin.training_seconds;
}

bool exported(const TourState& begin, const Editor& editor) {
  return editor.status().written_figures > begin.written_figures;
}

constexpr std::array<TourStep, 10> all_steps = {{
    {.title = "Open a picture",
     .text = "Click one of the examples, press {file.open}, or drop a photograph on the window.",
     .sentence_text = "Choose Picture, then click one of the examples, press {file.open}, or drop a "
                      "photograph on the window. To stay with the sentence, press Next.",
     .panel = "input",
     .other_panel = "kernels",
     .done = picture_opened},
    {.title = "See what counts",
     .text = "The map marks the patches that contribute to the predicted class, here in the last layer but "
             "one, because the last reads the class token alone. Point at one: it lights up in Weights, too. "
             "Click one for its own map, click it again to go back.",
     .sentence_text = "The marks show how much each word contributes to the sentence's embedding, here in "
                      "the last layer but one. Point at one: it lights up in Weights, too. Click one for its "
                      "own map, click it again to go back.",
     .decoder_text =
         "The marks show how much each token contributes to the likeliest next token. Point at one: "
         "it lights up in Weights, too. Click one to see what comes after it, click it again to go "
         "back.",
     .panel = "focus",
     .other_panel = "weights",
     .done = map_of_query_seen,
     .prepare = show_maps_of_patches},
    {.title = "Swap the kernel",
     .text = "Rows are layers, columns are attention kernels: a click on a dot sets a layer's kernel. "
             "Replace the last two layers together by hydra-cosine: the trained parameters that come with "
             "the program are for both.",
     .sentence_text = "Rows are layers, columns are attention kernels: a click on a dot sets a layer's "
                      "kernel. Replace softmax by hedgehog, whose trained parameters come with the program, "
                      "in all layers.",
     .panel = "kernels",
     .done = last_layers_replaced,
     .prepare = select_default_query, // in the last layer, which is clicked here, a patch's map is empty
     .shortcut = TourShortcut{"Replace the kernels", replace_layers}},
    {.title = "Compare with softmax",
     .text = "What you change is A; B is still softmax in every layer. Press {view.side_b} for B, "
             "{view.difference} for A − B, {view.all_sides} for all three side by side, {view.side_a} to "
             "come back.",
     .panel = "focus",
     .other_panel = "weights",
     .done = compared},
    {.title = "Look into a head",
     .text = "The layer's weights under several kernels, from the same queries and keys. The wheel zooms, a "
             "tooltip has the numbers, a click makes its row the query. Choose another head, or show all of "
             "them.",
     .panel = "weights",
     .done = looked_into_a_head,
     .prepare = show_maps_of_patches},
    {.title = "Type a sentence",
     .text = "Choose Sentence, and write: the text model runs while you type. The picture, its model and its "
             "kernels wait under Picture.",
     .sentence_text = "Write: the model runs while you type.",
     .panel = "input",
     .other_panel = "focus",
     .done = sentence_typed},
    {.title = "Let it write",
     .text = "Decoders such as smollm2 go on with a text. Open one, then press Write, or {write.start}: "
             "under A's "
             "kernels and under B's, side by side. Softmax keeps every key and value; the state of a linear "
             "kernel does not grow.",
     .decoder_text =
         "Press Write, or {write.start}: the model goes on with the text under A's kernels and under "
         "B's, side by side. Softmax keeps every key and value; the state of a linear kernel does "
         "not grow. Loss shows how little each token of the text was expected.",
     .panel = "write",
     .other_panel = "input",
     .done = text_written,
     .shortcut = TourShortcut{"Open smollm2", open_bundled_decoder}},
    {.title = "Train a kernel",
     .text = "Hedgehog's feature maps can learn softmax's weights, here from their start; the trained maps "
             "that come with the program stay. Press Start: it takes half a minute, on bundled sentences or "
             "pictures. Curves and weights follow.",
     .panel = "training",
     .other_panel = "weights",
     .done = trained},
    {.title = "Export a figure",
     .text = "Right-click any panel and export its figure as PNG, SVG or PDF. The whole list is under "
             "File › Export.",
     .panel = "focus",
     .done = exported},
    {.title = "Everything else",
     .text = "{view.palette} finds every action by a few letters of its name, {help.sheet} lists shortcuts "
             "and gestures, and {edit.undo} takes anything back. {view.layout.explore} brings back the first "
             "layout. This tour is under Help."},
}};

} // namespace

std::span<const TourStep> tour_steps() { return all_steps; }

std::string tour_text(const TourStep& step, InputKind kind, const std::vector<Action>& actions,
                      const bool decoder) {
  std::string text;
  const bool of_text = kind == InputKind::text;
  std::string_view rest = of_text && decoder && *step.decoder_text != '\0' ? step.decoder_text
                          : of_text && *step.sentence_text != '\0'         ? step.sentence_text
                                                                           : step.text;
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
                   .training_seconds = editor.training.seconds,
                   .writing_edition = editor.writing.edition,
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
