// Heads: muting them, finding others like one, measuring what a map marks, weights times values.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "app/document/edits.h"
#include "app/views/deletion_view.h"
#include "app/views/table_views.h"
#include "app/views/weights_view.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

using Heads = std::vector<HeadIndex>;

void key_mutes_selected_head(ImGuiTestContext* context) {
  start_over(context);
  select_cell(editor(), 10, 2);
  settle(context);
  const Document before = copy_of_document();
  const std::vector<double> whole = logits(*results().any());
  context->MouseMoveToPos({2, 2}); // no head under the pointer
  context->KeyPress(ImGuiKey_M);
  settle(context);
  IM_CHECK(document().scene().muted_heads == (Heads{{10, 2}}));
  const RunResult* run = results().any();
  IM_CHECK(run->muted_heads == (Heads{{10, 2}}));
  IM_CHECK(logits(*run) != whole);
  IM_CHECK(run->whole.has_value());
  IM_CHECK_LT(run->whole->similarity, 1.0);
  context->KeyPress(ImGuiMod_Shift | ImGuiKey_M);
  settle(context);
  IM_CHECK(layer_is_muted(document(), 10));
  IM_CHECK_EQ(results().any()->muted_heads.size(), 6U);
  editor().undo();
  editor().undo();
  settle(context);
  IM_CHECK(document() == before);
  IM_CHECK(!results().any()->whole.has_value());
  // Not bit by bit: a run with gradients takes another path.
  const std::vector<double> again = logits(*results().any());
  for (std::size_t i = 0; i < whole.size(); ++i) IM_CHECK_LT(std::abs(again.at(i) - whole[i]), 1e-3);
}

void menu_mutes_cell(ImGuiTestContext* context) {
  start_over(context);
  context->WindowFocus("//###entropy");
  settle(context);
  context->SetRef("//###entropy");
  point_at_head(context, {5, 3});
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/###mute_head");
  settle(context);
  IM_CHECK(document().scene().muted_heads == (Heads{{5, 3}}));
  // The pointer's head, not the selected one; and the layer of it.
  context->SetRef("//###entropy");
  point_at_head(context, {7, 1});
  context->Yield(2);
  IM_CHECK(editor().hovered_head() == (HeadIndex{7, 1}));
  context->KeyPress(ImGuiKey_M);
  context->Yield(2);
  IM_CHECK(document().scene().muted_heads == (Heads{{5, 3}, {7, 1}}));
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/###mute_layer");
  settle(context);
  IM_CHECK_EQ(document().scene().muted_heads.size(), 7U);
  point_at_head(context, {7, 1});
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/Unmute everything");
  settle(context);
  IM_CHECK(document().scene().muted_heads.empty());
}

void layer_menu_mutes_layer(ImGuiTestContext* context) {
  start_over(context);
  context->SetRef("//###layers");
  context->MouseMove("$$4/thumbnail");
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/###mute_layer");
  settle(context);
  IM_CHECK(layer_is_muted(document(), 4));
  IM_CHECK_EQ(results().any()->notes.back(), std::string("6 heads muted"));
}

void another_model_keeps_what_it_has(ImGuiTestContext*) {
  Scene scene;
  ModelInfo info;
  info.layers = 12;
  info.heads = 6;
  set_model(scene, "m", info);
  scene.muted_heads = {{0, 5}, {3, 2}, {11, 0}};
  info.layers = 6;
  info.heads = 4;
  set_model(scene, "n", info);
  IM_CHECK(scene.muted_heads == (Heads{{3, 2}}));
}

void norms_of_every_layer_and_token(ImGuiTestContext* context) {
  start_over(context);
  context->WindowFocus("//###norms");
  settle(context);
  const auto found = find(results(), HiddenNormsKey{});
  IM_CHECK(found.result != nullptr);
  const auto layers = document().scene().model->layers;
  IM_CHECK_EQ(found.result->extent(0), static_cast<std::int64_t>(layers + 1));
  IM_CHECK_EQ(found.result->extent(1), static_cast<std::int64_t>(found.run->tokens.size()));
  for (const float norm : found.result->values) IM_CHECK_GT(norm, 0.0f);
  std::optional<Figure> figure;
  between_frames(context, [&] { figure = application().figure_of("norms"); });
  IM_CHECK(figure.has_value());
  IM_CHECK(std::get<HeatMapPanel>(figure->panels.front()).values.values == found.result->values);
  change_view(editor(), "Side by side", [](ViewOptions& view) { view.shown = Shown::all; });
  settle(context);
  between_frames(context, [&] { figure = application().figure_of("norms"); });
  IM_CHECK_EQ(figure->panels.size(), 2U); // A and B are softmax: a line stands in the place of A − B
  set_layer_kernel(editor(), 6, elu);
  settle(context);
  between_frames(context, [&] { figure = application().figure_of("norms"); });
  IM_CHECK_EQ(figure->panels.size(), 3U);
  const Array& difference = std::get<HeatMapPanel>(figure->panels[2]).values;
  for (std::int64_t state = 0; state <= layers; ++state) { // the states after layer 6 alone differ
    const auto norms = difference.slice(state);
    const bool differs = std::ranges::any_of(norms, [](float value) { return std::abs(value) > 1e-3f; });
    IM_CHECK_EQ(differs, state > 6);
  }
  context->WindowFocus("//###layers"); // which shares its place
  start_over(context);
}

void similar_heads_listed(ImGuiTestContext* context) {
  start_over(context);
  select_cell(editor(), 4, 1);
  context->WindowFocus("//###similar");
  settle(context);
  const auto found = find(results(), SimilarHeadsKey{{4, 1}});
  IM_CHECK(found.result != nullptr);
  const SimilarHeads& similar = *found.result;
  IM_CHECK(similar.metric == HeadMetric::jensen_shannon);
  IM_CHECK_EQ(similar.distances.slice(4)[1], 0.0f);
  const auto near = nearest_heads(similar, 10);
  IM_CHECK_EQ(near.size(), 10U);
  for (std::size_t i = 0; i < near.size(); ++i) {
    IM_CHECK_GT(near[i].distance, 0.0);
    IM_CHECK_LT(near[i].distance, std::log(2.0));
    IM_CHECK(i == 0 || near[i - 1].distance <= near[i].distance);
  }
  context->SetRef("//###similar");
  context->ItemClick("$$0/near");
  settle(context);
  IM_CHECK_EQ(document().scene().layer, near[0].head.layer);
  IM_CHECK(document().scene().head.head == near[0].head.head);
  IM_CHECK(find(results(), SimilarHeadsKey{near[0].head}).result != nullptr);
  // With a signed kernel among them, all are measured by the cosine.
  apply_preset(editor(), Strategy::back, 1, hydra);
  settle(context);
  const auto other = find(results(), SimilarHeadsKey{near[0].head});
  IM_CHECK(other.result != nullptr && other.result->metric == HeadMetric::cosine);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void deletion_is_measured_when_asked(ImGuiTestContext* context) {
  start_over(context);
  context->WindowFocus("//###deletion");
  settle(context);
  const DeletionKey key{.layer = document().scene().layer, .steps = 5, .seed = document().execution.seed};
  IM_CHECK(find(results(), key).result == nullptr);
  context->SetRef("//###deletion");
  context->ItemClick("steps/5 steps");
  context->ItemClick("###measure");
  settle(context);
  const auto found = find(results(), key);
  IM_CHECK(found.result != nullptr);
  const DeletionResult& deletion = *found.result;
  IM_CHECK_EQ(deletion.shares.size(), 6U);
  IM_CHECK_EQ(deletion.hidden.back(), static_cast<std::int64_t>(found.run->rows) * found.run->columns);
  IM_CHECK_LT(std::abs(deletion.random.probabilities.front() - found.run->predictions.front().probability),
              1e-4);
  IM_CHECK_EQ(deletion.most_first.probabilities.back(), deletion.random.probabilities.back());
  const MeasuredDeletion measured{found.run.get(), found.result};
  const DeletionView view = deletion_view(measured, true, "");
  IM_CHECK_EQ(view.lines.lines.size(), 3U);
  IM_CHECK(view.lines.lines[0].y == deletion.most_first.probabilities);
  IM_CHECK(deletion_view(measured, false, "").lines.lines[2].y == deletion.random.values);

  // Its numbers are written.
  const auto file = scratch_file("deletion.csv");
  editor().emit(ExportFigure{.panel = "deletion", .file = file});
  context->Yield(3);
  while (application().exporting() && !context->IsError()) context->Yield();
  IM_CHECK(contents(file).find("most important first") != std::string::npos);
  IM_CHECK_STR_EQ(last_error().c_str(), "");

  // It is not measured again by itself, whatever is selected meanwhile.
  const auto generation = results().any()->generation;
  select_layer(editor(), 2);
  settle(context);
  IM_CHECK(results().any()->generation > generation);
  IM_CHECK(results().any()->quantities.all<DeletionKey>().empty());
}

void deletion_of_both_schedules(ImGuiTestContext* context) {
  start_over(context);
  change_view(editor(), "B", [](ViewOptions& view) { view.shown = Shown::b; });
  apply_preset(editor(), Strategy::back, 2, hydra);
  change_view(editor(), "A − B", [](ViewOptions& view) { view.shown = Shown::difference; });
  context->WindowFocus("//###deletion");
  settle(context);
  context->SetRef("//###deletion");
  context->ItemClick("steps/5 steps");
  context->ItemClick("###measure");
  settle(context);
  const DeletionKey key{.layer = document().scene().layer, .steps = 5, .seed = document().execution.seed};
  const auto a = find(results(), key);
  const auto b = find(application().coordinator().results(Side::b), key);
  IM_CHECK(a.result != nullptr && b.result != nullptr);
  IM_CHECK(a.result->most_first.probabilities != b.result->most_first.probabilities);
  const std::vector<MeasuredDeletion> measured = {{a.run.get(), a.result}, {b.run.get(), b.result}};
  const Figure figure = deletion_figure(measured, true);
  IM_CHECK_EQ(figure.panels.size(), 2U);
  IM_CHECK(figure.subtitle.find(deletion_note) != std::string::npos);
}

void value_weighted_weights(ImGuiTestContext* context) {
  start_over(context);
  context->WindowFocus("//###weights");
  settle(context);
  const int layer = document().scene().layer;
  const auto plain = find(results(), WeightsKey{.layer = layer, .kernel = softmax});
  IM_CHECK(plain.result != nullptr);
  context->SetRef("//###weights");
  context->ItemClick("value/value-weighted");
  compare_kernel(editor(), 1, hydra);
  settle(context);
  IM_CHECK(document().view.value_weighted);
  WeightsKey key{.layer = layer, .kernel = softmax, .value_weighted = true};
  const auto weighted = find(results(), key);
  IM_CHECK(weighted.result != nullptr);
  IM_CHECK(weighted.result->weights.values != plain.result->weights.values);
  const HeatMapPanel panel = weights_panel(*weighted.run, *weighted.result, nullptr, {});
  IM_CHECK(panel.scale.label.find("W_o") != std::string::npos);
  IM_CHECK(!weights_entropy(*weighted.result, {.head = 0}).has_value());
  // A signed kernel's are lengths as well.
  key.kernel = hydra;
  const auto signed_one = find(results(), key);
  IM_CHECK(signed_one.result != nullptr);
  const HeatMapPanel other = weights_panel(*signed_one.run, *signed_one.result, nullptr, {});
  IM_CHECK_EQ(other.scale.low, 0.0);
  // A difference names the same quantity.
  set_layer_kernel(editor(), layer, elu);
  change_view(editor(), "A − B", [](ViewOptions& view) { view.shown = Shown::difference; });
  settle(context);
  const auto label = [] {
    return std::get<HeatMapPanel>(application().figure_of("weights")->panels.front()).scale.label;
  };
  IM_CHECK_STR_EQ(label().c_str(), "‖α v W_o‖, A − B");
  IM_CHECK(application().run("view.value_weighted"));
  settle(context);
  IM_CHECK_STR_EQ(label().c_str(), "attention weight, A − B");
  start_over(context);
}

} // namespace

void register_head_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "heads", "norms_of_every_layer_and_token")->TestFunc =
      norms_of_every_layer_and_token;
  IM_REGISTER_TEST(engine, "heads", "key_mutes_selected_head")->TestFunc = key_mutes_selected_head;
  IM_REGISTER_TEST(engine, "heads", "menu_mutes_cell")->TestFunc = menu_mutes_cell;
  IM_REGISTER_TEST(engine, "heads", "layer_menu_mutes_layer")->TestFunc = layer_menu_mutes_layer;
  IM_REGISTER_TEST(engine, "heads", "another_model_keeps_what_it_has")->TestFunc =
      another_model_keeps_what_it_has;
  IM_REGISTER_TEST(engine, "heads", "similar_heads_listed")->TestFunc = similar_heads_listed;
  IM_REGISTER_TEST(engine, "heads", "deletion_is_measured_when_asked")->TestFunc =
      deletion_is_measured_when_asked;
  IM_REGISTER_TEST(engine, "heads", "deletion_of_both_schedules")->TestFunc = deletion_of_both_schedules;
  IM_REGISTER_TEST(engine, "heads", "value_weighted_weights")->TestFunc = value_weighted_weights;
}

} // namespace hydrascope::app::window_tests
