// Recorded attention in a model's place: opened, stepped through, with what needs a model greyed.
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/actions/action_table.h"
#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/panels/choices.h"
#include "app/ui/widgets.h"
#include "app/views/weights_view.h"
#include "engine/base/safetensors.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weights.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

fs::path capture(const std::string& name) {
  return test::source_folder() / "tests" / "golden" / "captures" / (name + ".safetensors");
}

bool enabled(const char* id) { return find_action(application().actions(), id)->enabled(editor()).ok; }

// Each panel that is open is brought to the front, and has what it asks for.
void show_all_panels(ImGuiTestContext* context) {
  for (const char* panel :
       {"focus", "layers", "predictions", "weights", "tokens", "vectors", "values", "entropy", "kl",
        "monotonicity", "change", "similar", "norms", "deletion", "timing", "scaling"}) {
    if (!editor().panel_open(panel)) show_panel(editor(), panel, panel, true);
    context->Yield(2);
    context->WindowFocus((std::string("//###") + panel).c_str());
    context->Yield(2);
  }
  settle(context);
}

// Panels as they were: which of them is in front is no part of the document.
void restore_panels(ImGuiTestContext* context) {
  start_over(context);
  for (const char* panel : {"//###layers", "//###focus", "//###weights"}) {
    context->WindowFocus(panel);
    context->Yield(2);
  }
}

void takes_a_models_place(ImGuiTestContext* context) {
  start_over(context);
  const fs::path before = document().scene().model_folder;
  IM_CHECK(open_path(editor(), capture("vit")));
  IM_CHECK(is_capture(document().scene()));
  IM_CHECK(document().kind == InputKind::image);
  show_all_panels(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  const RunResult& run = *results().any();
  IM_CHECK_EQ(run.rows, 4);
  IM_CHECK(run.query == std::optional<std::int64_t>(0));
  // The picture beside the capture lies below the map of attention, and no focus map is asked for.
  IM_CHECK_STR_EQ(input_name(*document().scene().input).c_str(), "vit.png");
  IM_CHECK(shown_maps(document()) == std::set<MapKind>{MapKind::attention});
  IM_CHECK(find(results(), AttentionRowKey{.layer = 1, .query = 0}).result != nullptr);
  IM_CHECK(!find(results(), FocusKey{1}));
  context->WindowFocus("//###focus");
  context->Yield(2);
  IM_CHECK(context->ItemExists("//###focus/##head")); // whose attention it is
  IM_CHECK(!enabled("edit.mute_head"));
  IM_CHECK(!enabled("edit.mute_layer"));
  IM_CHECK(!why_not_hidden(editor(), 3).empty());
  set_all_kernels(editor(), hedgehog);
  select_query(editor(), 5);
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  IM_CHECK(results().any()->schedule.layers.front() == hedgehog);
  // A picture needs a model again; undo brings the capture back.
  open_path(editor(), example("chelsea"));
  IM_CHECK(!is_capture(document().scene()));
  IM_CHECK(document().scene().model_folder == before);
  settle(context);
  IM_CHECK(!results().any()->predictions.empty());
  editor().undo();
  IM_CHECK(is_capture(document().scene()));
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  restore_panels(context);
}

void sequences_are_stepped_through(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = fresh_folder("captures");
  fs::copy_file(capture("bert"), folder / "a.safetensors");
  fs::copy_file(capture("gpt2"), folder / "b.safetensors");
  IM_CHECK(open_path(editor(), folder)); // its first one
  const auto shown = [] { return *document().scene().model->capture; };
  IM_CHECK_STR_EQ(shown().file.filename().c_str(), "a.safetensors");
  IM_CHECK(document().kind == InputKind::text);
  IM_CHECK(enabled("file.next_picture"));
  context->KeyPress(ImGuiKey_PageDown);
  settle(context);
  IM_CHECK_EQ(shown().item, 1);
  IM_CHECK_EQ(results().any()->tokens.size(), static_cast<std::size_t>(9));
  context->KeyPress(ImGuiKey_PageDown);
  settle(context);
  IM_CHECK_STR_EQ(shown().file.filename().c_str(), "b.safetensors");
  IM_CHECK_EQ(results().any()->tokens.size(), static_cast<std::size_t>(8));
  context->KeyPress(ImGuiKey_PageUp);
  settle(context);
  IM_CHECK_STR_EQ(shown().file.filename().c_str(), "a.safetensors");
  IM_CHECK_EQ(shown().item, 1);
  context->SetRef("//###input");
  context->ItemClick("###previous_sequence");
  settle(context);
  IM_CHECK_EQ(shown().item, 0);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
}

void parts_are_chosen(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(open_path(editor(), capture("whisper")));
  context->SetRef("//###input");
  context->ItemClick("##part");
  context->ItemClick("//$FOCUSED/###part2");
  context->Yield(2);
  const CaptureInfo& shown = *document().scene().model->capture;
  IM_CHECK_EQ(shown.part, 2);
  IM_CHECK_EQ(shown.queries, 5);
  show_all_panels(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  const auto weights = application().figure_of("weights");
  IM_CHECK(weights.has_value() && !weights->panels.empty());
  const auto keys = static_cast<std::int64_t>(results().any()->tokens.size()) - shown.queries;
  IM_CHECK(std::get<HeatMapPanel>(weights->panels.front()).values.shape ==
           (std::vector<std::int64_t>{shown.queries, keys}));
  // A kernel that knows distances says why it does not run.
  set_all_kernels(editor(), {.name = "cosformer", .parameters = {}});
  settle(context);
  IM_CHECK(results().error.find("cross-attention") != std::string::npos);
  restore_panels(context);
}

// It knows which tokens were recorded, not which of them are special: GPT-2 has none of BERT's.
void offers_no_token_that_it_lacks(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "The cat sat on the mat.");
  settle(context);
  IM_CHECK(context->ItemExists("//###input/[CLS], [SEP]")); // of a model
  IM_CHECK(open_path(editor(), capture("gpt2")));
  settle(context);
  IM_CHECK(!context->ItemExists("//###input/[CLS], [SEP]"));
  IM_CHECK(!context->ItemExists("//###input/whole words"));
  context->WindowFocus("//###focus");
  context->SetRef("//###focus");
  const auto offers = [&](const char* name) {
    context->ItemClick("##query");
    IM_CHECK_RETV(context->ItemExists("//$FOCUSED/all tokens"), false);
    const bool offered = context->ItemExists((std::string("//$FOCUSED/") + name).c_str());
    context->PopupCloseAll();
    return offered;
  };
  IM_CHECK(!offers("class token [CLS]"));
  const std::string first = "$$0/" + as_label(token_name(*results().any(), 0));
  IM_CHECK(offers(first.c_str()));
  IM_CHECK(open_path(editor(), capture("vit")));
  settle(context);
  IM_CHECK(offers("class token"));
  restore_panels(context);
}

// A query has no weight on the keys after it: matrices and thumbnails are grey there.
void causal_ones_end_at_the_query(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(open_path(editor(), capture("gpt2")));
  for (const bool all_heads : {false, true}) {
    change_view(editor(), "All heads", [&](ViewOptions& view) { view.all_heads = all_heads; });
    context->WindowFocus("//###weights");
    context->Yield(2);
    settle(context);
    IM_CHECK_STR_EQ(results().error.c_str(), "");
    const auto figure = application().figure_of("weights");
    IM_CHECK(figure.has_value() && !figure->panels.empty());
    IM_CHECK(figure->subtitle.ends_with(causal_note));
    const auto& panel = std::get<HeatMapPanel>(figure->panels.front());
    IM_CHECK(panel.missing == MissingCells::grey);
    const std::int64_t tokens = panel.values.extent(1);
    IM_CHECK_EQ(tokens, 8);
    for (std::int64_t row = 0; row < tokens; ++row)
      for (std::int64_t key = 0; key < tokens; ++key)
        IM_CHECK_EQ_NO_RET(std::isnan(panel.values.values[static_cast<std::size_t>(row * tokens + key)]),
                           key > row);
  }
  restore_panels(context);
}

// Of 700 tokens no panel asks for whole matrices.
void long_ones_by_rows_and_tiles(ImGuiTestContext* context) {
  start_over(context);
  constexpr std::int64_t heads = 2, tokens = 700, width = 4;
  std::vector<float> numbers(static_cast<std::size_t>(heads * tokens * width));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) / 4 - 1;
  const TensorView view{ElementType::f32, {1, heads, tokens, width}, std::as_bytes(std::span(numbers))};
  const fs::path file = fresh_folder("long") / "long.safetensors";
  write_safetensors(file, {{"layers.0.q", view}, {"layers.0.k", view}, {"layers.0.v", view}},
                    {{"causal", "true"}});
  IM_CHECK(open_path(editor(), file));
  show_all_panels(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  for (const auto& part : results().parts)
    for (const auto& entry : part->quantities.all<WeightsKey>())
      IM_CHECK_LT(entry.result->weights.extent(1), tokens);
  select_query(editor(), 650);
  context->WindowFocus("//###values");
  context->Yield(2);
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  const auto values = application().figure_of("values");
  IM_CHECK(values.has_value());
  IM_CHECK_EQ(std::get<BarsPanel>(values->panels.front()).values.size(), 651U); // up to the query
  restore_panels(context);
}

// Of cross-attention the panel shows the queries' rows and the keys' columns alone, also as tiles.
void long_cross_attention_by_tiles(ImGuiTestContext* context) {
  start_over(context);
  constexpr std::int64_t heads = 2, queries = 30, keys = 700, width = 4;
  std::vector<float> numbers(static_cast<std::size_t>(heads * keys * width));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) / 4 - 1;
  const TensorView of_keys{ElementType::f32, {1, heads, keys, width}, std::as_bytes(std::span(numbers))};
  const TensorView of_queries{ElementType::f32,
                              {1, heads, queries, width},
                              std::as_bytes(std::span(numbers).first(heads * queries * width))};
  const fs::path file = fresh_folder("long-cross") / "long.safetensors";
  write_safetensors(file, {{"layers.0.q", of_queries}, {"layers.0.k", of_keys}, {"layers.0.v", of_keys}}, {});
  IM_CHECK(open_path(editor(), file));
  show_all_panels(context);
  context->WindowFocus("//###weights");
  context->Yield(2);
  settle(context);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
  // Low cells of many rows: the matrix fills the panel's width, which a square one does not.
  const ImRect map = context->ItemInfo("//###weights/$$0/map").RectFull;
  IM_CHECK_GT(map.GetWidth(), 1.2f * map.GetHeight());
  restore_panels(context);
}

void kept_in_sessions(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(open_path(editor(), capture("bert").string() + ":0:1"));
  settle(context);
  const fs::path file = scratch_file("capture-session.json");
  editor().emit(SaveSession{file});
  context->Yield(2);
  while (application().saving()) context->Yield();
  IM_CHECK(fs::exists(file));
  start_over(context);
  IM_CHECK(!is_capture(document().scene()));
  IM_CHECK(open_path(editor(), file));
  settle(context);
  IM_CHECK(is_capture(document().scene()));
  IM_CHECK_EQ(document().scene().model->capture->item, 1);
  IM_CHECK_STR_EQ(results().error.c_str(), "");
}

void damaged_ones_change_nothing(ImGuiTestContext* context) {
  start_over(context);
  const Document before = copy_of_document();
  const fs::path damaged = fresh_folder("damaged") / "cut.safetensors";
  fs::copy_file(capture("bert"), damaged);
  fs::resize_file(damaged, fs::file_size(damaged) / 2);
  IM_CHECK(!open_path(editor(), damaged));
  IM_CHECK(last_error().find("cut.safetensors") != std::string::npos);
  IM_CHECK(document() == before);
}

} // namespace

void register_capture_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "captures", "takes_a_models_place")->TestFunc = takes_a_models_place;
  IM_REGISTER_TEST(engine, "captures", "sequences_are_stepped_through")->TestFunc =
      sequences_are_stepped_through;
  IM_REGISTER_TEST(engine, "captures", "parts_are_chosen")->TestFunc = parts_are_chosen;
  IM_REGISTER_TEST(engine, "captures", "offers_no_token_that_it_lacks")->TestFunc =
      offers_no_token_that_it_lacks;
  IM_REGISTER_TEST(engine, "captures", "causal_ones_end_at_the_query")->TestFunc =
      causal_ones_end_at_the_query;
  IM_REGISTER_TEST(engine, "captures", "long_ones_by_rows_and_tiles")->TestFunc = long_ones_by_rows_and_tiles;
  IM_REGISTER_TEST(engine, "captures", "long_cross_attention_by_tiles")->TestFunc =
      long_cross_attention_by_tiles;
  IM_REGISTER_TEST(engine, "captures", "kept_in_sessions")->TestFunc = kept_in_sessions;
  IM_REGISTER_TEST(engine, "captures", "damaged_ones_change_nothing")->TestFunc = damaged_ones_change_nothing;
}

} // namespace hydrascope::app::window_tests
