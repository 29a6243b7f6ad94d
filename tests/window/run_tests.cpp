// Runs that are no longer wanted: stopped by the user, or by what the document has become.
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

// Some seconds even on many cores, so that it cannot be over before it is cancelled: 1,297 tokens, with all
// overviews.
void start_a_long_run(ImGuiTestContext* context) {
  editor().change("A long run", [](Document& document) { document.execution.image_size = 504; });
  while (!application().coordinator().computing() && !context->IsError()) context->Yield();
}

void cancelled_by_the_user(ImGuiTestContext* context) {
  start_over(context);
  const std::uint64_t before = results().any()->generation;
  start_a_long_run(context);
  IM_CHECK(editor().status().computing);
  IM_CHECK(application().run("model.cancel"));
  settle(context);
  IM_CHECK(!application().coordinator().computing());
  IM_CHECK_EQ(results().any()->generation, before); // the last good picture stays …
  IM_CHECK(results().stale);                        // … and is not taken for fresh
  IM_CHECK(results().cancelled);
  IM_CHECK(editor().status().stopped);
  IM_CHECK_STR_EQ(last_error().c_str(), "");

  IM_CHECK(application().run("model.run_again"));
  context->Yield();
  settle(context);
  IM_CHECK(!results().stale);
  IM_CHECK(!results().cancelled);
  IM_CHECK(!editor().status().stopped);
  IM_CHECK_EQ(results().any()->tokens.size(), 1297U);
  start_over(context);
}

void goes_on_after_memory_is_freed(ImGuiTestContext* context) {
  start_over(context);
  const std::string before = results().any()->predictions.front().label;
  IM_CHECK(application().run("model.free_memory"));
  settle(context);
  IM_CHECK(!results().stale); // what is shown stays
  IM_CHECK_STR_EQ(results().any()->predictions.front().label.c_str(), before.c_str());
  apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
  settle(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK_EQ(results().any()->schedule.layers.back().name, "hydra-cosine");
  IM_CHECK_STR_EQ(results().any()->predictions.front().label.c_str(), before.c_str());
  start_over(context);
}

void made_pointless_by_undo(ImGuiTestContext* context) {
  start_over(context);
  const std::uint64_t before = results().any()->generation;
  start_a_long_run(context);
  editor().undo();
  settle(context);
  IM_CHECK(!application().coordinator().computing());
  IM_CHECK_EQ(results().any()->generation, before);
  IM_CHECK(!results().stale);
  IM_CHECK(!editor().status().stopped);
}

// The rest of the panels would take the cores from the frame that shows the new map.
void the_map_is_drawn_before_the_rest_runs(ImGuiTestContext* context) {
  start_over(context);
  const int layer = document().scene().layer;
  set_layer_kernel(editor(), layer, {.name = "hydra-cosine", .parameters = {}});
  do context->Yield();
  while ((results().stale || !find(results(), FocusKey{layer}).result) && !context->IsError());
  IM_CHECK(!application().coordinator().computing());
  IM_CHECK(!application().coordinator().settled());
  context->Yield();
  IM_CHECK(application().coordinator().computing());
  settle(context);
  start_over(context);
}

void memory_is_told_beforehand(ImGuiTestContext* context) {
  start_over(context);
  Document larger = copy_of_document();
  const ModelInfo& model = *larger.scene().model;
  const std::int64_t tokens = expected_tokens(larger);
  IM_CHECK_GE(tokens, static_cast<std::int64_t>(results().any()->tokens.size())); // an adapter may want fewer
  Requested requested;
  const WeightsKey weights{.layer = 0, .kernel = softmax};
  requested.first.add(weights);
  const double bytes = expected_bytes(larger, requested);
  IM_CHECK_GT(bytes, static_cast<double>(model.heads * tokens * tokens) * sizeof(float));
  larger.execution.image_size = 4 * model.image_size; // 16 times the patches, 256 times the pairs
  IM_CHECK_GT(expected_bytes(larger, requested), 200 * bytes);
  requested.then = {RolloutKey{}, weights}; // the larger of two runs, which follow one another
  IM_CHECK_GT(expected_bytes(document(), requested), bytes);
  larger.scene().input.reset();
  IM_CHECK_EQ(expected_bytes(larger, requested), 0.0);
}

// The Layers panel wants a map of every layer, which come one by one as layers are selected: forgetting one
// of them for the next would go on for ever.
void what_is_shown_is_not_forgotten(ImGuiTestContext* context) {
  start_over(context);
  const int layers = document().scene().model->layers;
  for (int layer = 0; layer < layers; ++layer) {
    select_layer(editor(), layer);
    settle(context);
  }
  for (int layer = 0; layer < layers; ++layer) IM_CHECK(find(results(), FocusKey{layer}).result != nullptr);
  const std::size_t parts = results().parts.size();
  const std::uint64_t newest = results().any()->generation;
  context->Yield(10);
  settle(context);
  IM_CHECK_EQ(results().any()->generation, newest);
  IM_CHECK_LE(parts, static_cast<std::size_t>(layers) + 1);
}

// Puts every panel in front, one after the other, and names those that show something to export. Not of what
// was measured when the user asked for it, which stays and says of what it is.
std::set<std::string> panels_with_a_figure(ImGuiTestContext* context) {
  static const std::set<std::string> measured = {"deletion", "folder", "scaling", "roofline", "training"};
  std::set<std::string> found;
  for (const PanelName& panel : application().panels()) {
    if (measured.contains(panel.id)) continue;
    editor().emit(BringToFront{panel.id});
    settle(context);
    if (application().figure_of(panel.id)) found.insert(panel.id);
  }
  return found;
}

// Neither in the panels in front nor in those behind, which come there when it is over.
void a_picture_that_fails_shows_no_sentence(ImGuiTestContext* context) {
  start_over(context);
  set_layer_kernel(editor(), 5, {.name = "cosformer", .parameters = {{"m", "16"}}}); // it has more tokens
  editor().change("B, too",
                  [](Document& document) { document.scene().schedules[1] = document.scene().schedules[0]; });
  settle(context);
  open_text(editor(), "The cat sat on the mat.");
  for (const bool all_heads : {false, true}) {
    show_kind(editor(), InputKind::text);
    change_view(editor(), "All", [&](ViewOptions& view) {
      view.shown = Shown::all;
      view.all_heads = all_heads;
    });
    settle(context);
    const std::set<std::string> of_the_sentence = panels_with_a_figure(context);
    for (const char* panel : {"focus", "layers", "weights", "vectors", "tokens", "entropy", "monotonicity"})
      IM_CHECK_NO_RET(of_the_sentence.contains(panel));
    show_kind(editor(), InputKind::image);
    settle(context);
    IM_CHECK(!results().error.empty());
    IM_CHECK(results().any() == nullptr);
    IM_CHECK_STR_EQ(fmt::format("{}", fmt::join(panels_with_a_figure(context), ", ")).c_str(), "");
  }
  start_over(context);
}

// The picture is there, but not what this panel compares, which fails: what it showed of the sentence is not
// kept.
void a_comparison_that_fails_shows_no_sentence(ImGuiTestContext* context) {
  start_over(context);
  editor().change("Compare", [](Document& document) {
    document.scene().comparison[1] = KernelSpec{.name = "cosformer", .parameters = {{"m", "16"}}};
  });
  open_text(editor(), "The cat sat on the mat.");
  editor().emit(BringToFront{"weights"});
  settle(context);
  IM_CHECK(application().figure_of("weights").has_value());
  for (const PanelName& panel : application().panels()) // others compare, too
    show_panel(editor(), panel.id, panel.title, panel.id == "focus");
  settle(context);
  show_kind(editor(), InputKind::image);
  settle(context);
  IM_CHECK(results().any() != nullptr);
  show_panel(editor(), "weights", "Weights", true);
  settle(context);
  IM_CHECK(!results().error.empty());
  IM_CHECK(!application().figure_of("weights").has_value());
  editor().change("Compare",
                  [](Document& document) { document.scene().comparison[1] = KernelSpec{.name = "elu"}; });
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  IM_CHECK(application().figure_of("weights").has_value());
  start_over(context);
}

// They stay on the screen, dimmed, and would be exported beside the present input and kernels.
void what_fails_exports_nothing_and_is_not_timed(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().figure_of("focus").has_value());
  set_layer_kernel(editor(), 5, {.name = "cosformer", .parameters = {{"m", "16"}}}); // it has more tokens
  settle(context);
  IM_CHECK(results().any() != nullptr);
  IM_CHECK(results().stale);
  IM_CHECK(!application().figure_of("focus").has_value());
  editor().emit(TimePasses{});
  context->Yield(3);
  IM_CHECK(!editor().status().timing);
  editor().undo();
  settle(context);
  IM_CHECK(application().figure_of("focus").has_value());
  start_over(context);
}

// Of one request what compares is left out, and the rest comes.
void what_compares_nothing_is_shown_where_a_comparison_fails(ImGuiTestContext* context) {
  start_over(context);
  editor().change("Compare", [](Document& document) {
    document.scene().comparison[1] = KernelSpec{.name = "cosformer", .parameters = {{"m", "16"}}};
  });
  change_view(editor(), "Teacher-forced", [](ViewOptions& view) { view.teacher_forced = true; });
  open_text(editor(), "The cat sat on the mat.");
  for (const char* panel : {"weights", "kl"}) { // the second is asked for when the first has failed
    editor().emit(BringToFront{panel});
    settle(context);
    IM_CHECK(application().figure_of(panel).has_value());
  }
  show_kind(editor(), InputKind::image);
  settle(context);
  IM_CHECK(!results().error.empty());
  for (const char* panel : {"weights", "kl"}) IM_CHECK(!application().figure_of(panel).has_value());
  IM_CHECK(application().figure_of("focus").has_value()); // which compares nothing
  IM_CHECK(application().coordinator().stopped());        // and is not tried for ever
  editor().change("Compare",
                  [](Document& document) { document.scene().comparison[1] = KernelSpec{.name = "elu"}; });
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  IM_CHECK(application().figure_of("weights").has_value());
  start_over(context);
}

} // namespace

void register_run_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "runs", "cancelled_by_the_user")->TestFunc = cancelled_by_the_user;
  IM_REGISTER_TEST(engine, "runs", "the_map_is_drawn_before_the_rest_runs")->TestFunc =
      the_map_is_drawn_before_the_rest_runs;
  IM_REGISTER_TEST(engine, "runs", "goes_on_after_memory_is_freed")->TestFunc = goes_on_after_memory_is_freed;
  IM_REGISTER_TEST(engine, "runs", "memory_is_told_beforehand")->TestFunc = memory_is_told_beforehand;
  IM_REGISTER_TEST(engine, "runs", "what_is_shown_is_not_forgotten")->TestFunc =
      what_is_shown_is_not_forgotten;
  IM_REGISTER_TEST(engine, "runs", "a_picture_that_fails_shows_no_sentence")->TestFunc =
      a_picture_that_fails_shows_no_sentence;
  IM_REGISTER_TEST(engine, "runs", "a_comparison_that_fails_shows_no_sentence")->TestFunc =
      a_comparison_that_fails_shows_no_sentence;
  IM_REGISTER_TEST(engine, "runs", "what_compares_nothing_is_shown_where_a_comparison_fails")->TestFunc =
      what_compares_nothing_is_shown_where_a_comparison_fails;
  IM_REGISTER_TEST(engine, "runs", "what_fails_exports_nothing_and_is_not_timed")->TestFunc =
      what_fails_exports_nothing_and_is_not_timed;
  IM_REGISTER_TEST(engine, "runs", "made_pointless_by_undo")->TestFunc = made_pointless_by_undo;
}

} // namespace hydrascope::app::window_tests
