// A decoder in the window: next tokens, losses, the triangle of weights, and the panel that writes.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/document/writing_edits.h"
#include "app/panels/choices.h"
#include "app/panels/weights/weights_column.h"
#include "app/views/share_text.h"
#include "engine/base/paths.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/last_token.h"
#include "engine/run/quantities/token_loss.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

// With the panels made for it.
void begin(ImGuiTestContext* context) {
  start_over(context);
  open_decoder(context);
  application().run("view.layout.text");
  context->Yield(4);
  settle(context);
}

std::string text() { return std::get<TextInput>(*document().scene().input).text; }

// Presses the button and waits until all is written.
void write(ImGuiTestContext* context) {
  context->WindowFocus("//###write");
  context->SetRef("//###write");
  context->ItemClick("###write");
  while (!editor().writing.running && editor().writing.empty() && !context->IsError()) context->Yield();
  settle(context);
}

// The golden decoder with more positions, in a folder of its own.
std::filesystem::path decoder_with_positions(const std::string& name, const int count) {
  const std::filesystem::path folder = fresh_folder(name) / "decoder";
  std::filesystem::copy(golden_decoder(), folder);
  std::string config = read_text_file(folder / "config.json");
  const std::string positions = "\"max_position_embeddings\": ", present = positions + "512";
  config.replace(config.find(present), present.size(), positions + std::to_string(count));
  write_file_atomically(folder / "config.json", config);
  return folder;
}

void runs_like_other_models(ImGuiTestContext* context) {
  begin(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  const RunResult* run = results().any();
  IM_CHECK(run != nullptr && run->model.causal);
  const std::int64_t last = std::ssize(run->tokens) - 1;
  IM_CHECK(run->query == last);
  IM_CHECK(!run->predictions.empty());
  context->WindowFocus("//###loss");
  settle(context);
  const auto loss = find(results(), TokenLossKey{});
  IM_CHECK(loss.result != nullptr);
  IM_CHECK_EQ(std::ssize(loss.result->loss.values), last);
  for (const char* panel : {"focus", "weights", "loss", "tokens", "values", "vectors", "layers",
                            "predictions", "entropy", "kl", "monotonicity", "norms", "similar", "change"}) {
    if (!editor().panel_open(panel)) show_panel(editor(), panel, panel, true);
    context->Yield();
    context->WindowFocus((std::string("//###") + panel).c_str());
    settle(context);
    IM_CHECK_STR_EQ(last_error().c_str(), "");
    const auto figure = application().figure_of(panel);
    if (!figure) IM_ERRORF("%s shows nothing", panel);
  }
  start_over(context);
}

// A is softmax, B elu: what shows one of them says which.
void names_the_side_that_is_shown(ImGuiTestContext* context) {
  begin(context);
  context->WindowFocus("//###loss");
  context->SetRef("//###loss");
  const auto title = [] {
    return std::get<TokensPanel>(application().figure_of("loss")->panels.front()).title;
  };
  const auto& schedules = document().scene().schedules;
  const std::string a = schedules[0].summary(), b = schedules[1].summary();
  const std::array<std::array<std::string, 3>, 3> expected = {
      {{"side/A", "A: " + a, "A, " + a},
       {"side/B", "B: " + b, "B, " + b},
       {"side/A − B", "A − B   A: " + a + "   B: " + b, "A − B, " + a + " − " + b}}};
  for (const auto& [button, status, loss] : expected) {
    context->ItemClick(button.c_str());
    settle(context);
    IM_CHECK_STR_EQ(kernels_text(document()).c_str(), status.c_str());
    IM_CHECK_STR_EQ(title().c_str(), loss.c_str());
  }
  context->ItemClick("side/B"); // with A's kernels
  for (int layer = 0; layer < document().scene().model->layers; ++layer)
    set_layer_kernel(editor(), layer, softmax);
  settle(context);
  IM_CHECK_STR_EQ(kernels_text(document()).c_str(), a.c_str());
  IM_CHECK_STR_EQ(title().c_str(), a.c_str());
  start_over(context);
}

void small_shares_are_not_zero(ImGuiTestContext* /*context*/) {
  const std::vector<Prediction> listed = {{.index = 7, .label = "a", .probability = 0.366},
                                          {.index = 3, .label = "b", .probability = 0.0012}};
  IM_CHECK_STR_EQ(share_text(share_of(listed, 7)).c_str(), "36.6 %");
  IM_CHECK_STR_EQ(share_text(share_of(listed, 3)).c_str(), "0.1 %");
  IM_CHECK_STR_EQ(share_text(share_of(listed, 5)).c_str(), "< 0.2 %"); // below the last one listed
  IM_CHECK_STR_EQ(share_text({.value = 0.0004}).c_str(), "< 0.1 %");
  IM_CHECK_STR_EQ(share_text({.value = 0}).c_str(), "0.0 %");
  IM_CHECK_STR_EQ(exact_share_text(share_of(listed, 5)).c_str(), "less than 0.12 %");
}

void a_token_is_the_query_of_what_comes_next(ImGuiTestContext* context) {
  begin(context);
  const std::vector<Prediction> after_all = results().any()->predictions;
  context->WindowFocus("//###focus");
  settle(context);
  context->ItemClick("//###focus/**/$$2/token");
  settle(context);
  IM_CHECK(document().scene().query == 2);
  const RunResult* run = results().any();
  IM_CHECK(run->query == 2);
  IM_CHECK(!std::ranges::equal(run->predictions, after_all, {}, &Prediction::logit, &Prediction::logit));
  // Nothing after the query contributes to what is predicted from it.
  const auto focus = find(results(), FocusKey{document().scene().layer});
  for (std::size_t token = 3; token < focus.result->contributions.values.size(); ++token)
    IM_CHECK_EQ(focus.result->contributions.values[token], 0.0f);
  start_over(context);
}

void another_next_token_is_the_target(ImGuiTestContext* context) {
  begin(context);
  const auto before = find(results(), FocusKey{document().scene().layer}).result->contributions.values;
  const int second = results().any()->predictions.at(1).index;
  const std::string row = "//###predictions/$$" + std::to_string(second) + "/class";
  context->ItemClick(row.c_str());
  settle(context);
  IM_CHECK(document().scene().target.kind == Target::Kind::class_index);
  IM_CHECK_EQ(document().scene().target.index, second);
  const auto found = find(results(), FocusKey{document().scene().layer});
  IM_CHECK(found.result->contributions.values != before);
  constexpr double rounding = 1e-4; // of the path with gradients
  IM_CHECK_LT(std::abs(found.run->target_value - results().any()->predictions.at(1).logit), rounding);
  start_over(context);
}

void weights_end_at_the_diagonal(ImGuiTestContext* context) {
  begin(context);
  context->WindowFocus("//###weights");
  settle(context);
  const auto figure = application().figure_of("weights");
  IM_CHECK(figure.has_value());
  const auto& panel = std::get<HeatMapPanel>(figure->panels.front());
  const std::int64_t tokens = panel.values.extent(1);
  for (std::int64_t row = 0; row < tokens; ++row)
    for (std::int64_t key = 0; key < tokens; ++key)
      IM_CHECK_EQ(std::isnan(panel.values.values[static_cast<std::size_t>(row * tokens + key)]), key > row);
  start_over(context);
}

// A text of 700 bytes may have as many tokens, and a longer one is not shown whole: neither is known to have
// fewer tokens before it has run.
void monotonicity_asks_for_no_row_that_is_not_there(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(open_model(editor(), decoder_with_positions("many-positions", 4096).string()));
  for (const std::size_t bytes : {std::size_t{700}, std::size_t{2000}}) {
    std::string words;
    while (words.size() < bytes) words += "the cat sat on the mat ";
    open_text(editor(), words);
    editor().emit(BringToFront{"monotonicity"});
    settle(context);
    IM_CHECK_STR_EQ(last_error().c_str(), "");
    IM_CHECK_LT(std::ssize(results().any()->tokens), expected_tokens(document()) * 9 / 10);
    IM_CHECK(application().figure_of("monotonicity").has_value());
  }
  context->WindowFocus("//###entropy"); // which shares its place
  start_over(context);
}

void writes_under_both_schedules(ImGuiTestContext* context) {
  begin(context);
  change_writing(editor(), "Tokens", [](WritingOptions& options) { options.tokens = 6; });
  write(context);
  const Writing& writing = editor().writing;
  IM_CHECK_STR_EQ(writing.prompt.c_str(), text().c_str());
  for (const Side side : {Side::a, Side::b}) {
    IM_CHECK_STR_EQ(writing.side(side).problem.c_str(), "");
    IM_CHECK(writing.side(side).tokens.size() == 6 || !writing.side(side).ended.empty());
  }
  const auto figure = application().figure_of("write");
  IM_CHECK(figure.has_value());
  IM_CHECK_EQ(figure->panels.size(), 4U);
  // It goes on, …
  const std::size_t before = writing.side(Side::a).tokens.size();
  if (writing.side(Side::a).ended.empty()) {
    context->ItemClick("###go_on");
    context->Yield(2);
    settle(context);
    IM_CHECK_GT(writing.side(Side::a).tokens.size(), before);
  }
  // … and is taken over in one step.
  const std::string prompt = text(), written = writing.side(Side::a).text;
  context->ItemClick("//###write/**/###take_a");
  context->Yield();
  if (!written.empty()) {
    IM_CHECK_STR_EQ(text().c_str(), (prompt + written).c_str());
    editor().undo();
  }
  IM_CHECK_STR_EQ(text().c_str(), prompt.c_str());
  settle(context);
  start_over(context);
}

void stops_at_once(ImGuiTestContext* context) {
  begin(context);
  IM_CHECK(open_model(editor(), decoder_with_positions("writes-long", 4096).string()));
  constexpr int most = 3000; // which take longer than a frame
  change_writing(editor(), "Tokens", [](WritingOptions& options) { options.tokens = most; });
  context->WindowFocus("//###write");
  context->SetRef("//###write");
  context->ItemClick("###write");
  while (!editor().writing.running && editor().writing.empty() && !context->IsError()) context->Yield();
  IM_CHECK(application().run("model.cancel"));
  context->Yield(3);
  IM_CHECK(!editor().writing.running);
  IM_CHECK_LT(editor().writing.sides[0].tokens.size(), static_cast<std::size_t>(most));
  start_over(context);
}

void other_panels_follow(ImGuiTestContext* context) {
  begin(context);
  const std::size_t tokens = results().any()->tokens.size();
  change_writing(editor(), "Tokens", [](WritingOptions& options) {
    options.tokens = 4;
    options.follow = true;
    options.temperature = 0;
  });
  write(context);
  const WrittenSide& side = editor().writing.side(Side::a);
  IM_CHECK(!side.text.empty());
  const RunResult* run = results().any();
  IM_CHECK_GT(run->tokens.size(), tokens);
  IM_CHECK(run->query == std::ssize(run->tokens) - 1);
  // The document is as it was, and so is the text in the input.
  IM_CHECK_STR_EQ(text().c_str(), editor().writing.prompt.c_str());
  change_writing(editor(), "Follow", [](WritingOptions& options) { options.follow = false; });
  context->Yield(2);
  settle(context);
  IM_CHECK_EQ(results().any()->tokens.size(), tokens);
  start_over(context);
}

// The first token of this side's column that can be pointed at.
std::optional<std::int64_t> pointed_token(ImGuiTestContext* context, const std::size_t side) {
  std::vector<const ImGuiWindow*> columns;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    const std::string_view name = window->Name;
    if (window->WasActive && name.find("###write/side_") != std::string_view::npos &&
        name.find("/text_") != std::string_view::npos)
      columns.push_back(window);
  }
  std::ranges::sort(columns, {}, [](const ImGuiWindow* window) { return window->Pos.x; });
  IM_CHECK_RETV(columns.size() == 2, std::nullopt);
  const ImRect area = columns[side]->InnerClipRect;
  constexpr int across = 12, down = 16; // lines are further apart than the places looked at
  for (int line = 0; line < down; ++line) {
    const float y = area.Min.y + area.GetHeight() * (static_cast<float>(line) + 0.5f) / down;
    for (int place = 0; place < across && !context->IsError(); ++place) {
      const float x = area.Min.x + area.GetWidth() * (static_cast<float>(place) + 0.5f) / across;
      context->MouseMoveToPos({x, y});
      context->Yield(2);
      if (editor().hovered_token()) return editor().hovered_token();
    }
  }
  return std::nullopt;
}

// The other panels show A's text: B's tokens name nothing there, and A's nothing in the text alone.
void written_tokens_are_chosen_where_they_are_shown(ImGuiTestContext* context) {
  begin(context);
  change_writing(editor(), "Tokens", [](WritingOptions& options) { options.tokens = 24; });
  write(context);
  change_writing(editor(), "Follow", [](WritingOptions& options) { options.follow = true; });
  settle(context);
  const std::int64_t own = editor().writing.prompt_tokens();
  IM_CHECK(!pointed_token(context, 1));
  change_view(editor(), "B", [](ViewOptions& view) { view.shown = Shown::b; });
  settle(context);
  IM_CHECK(!pointed_token(context, 0));
  IM_CHECK(pointed_token(context, 1).has_value());
  change_view(editor(), "A", [](ViewOptions& view) { view.shown = Shown::a; });
  settle(context);
  const std::optional<std::int64_t> token = pointed_token(context, 0);
  IM_CHECK(token && *token >= own);
  context->MouseClick();
  settle(context);
  IM_CHECK(document().scene().query == token);
  IM_CHECK(results().any()->query == token);
  change_writing(editor(), "Follow", [](WritingOptions& options) { options.follow = false; });
  settle(context);
  IM_CHECK_EQ(std::ssize(results().any()->tokens), own);
  IM_CHECK(results().any()->query == own - 1);
  change_writing(editor(), "Follow", [](WritingOptions& options) {
    options.follow = true;
    options.tokens = 2;
  });
  write(context); // anew
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

void says_what_it_needs(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "no decoder");
  application().run("view.layout.text");
  context->Yield(4);
  settle(context);
  for (const char* panel : {"write", "loss"}) {
    context->WindowFocus((std::string("//###") + panel).c_str());
    settle(context);
    IM_CHECK(!application().figure_of(panel).has_value());
  }
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

void a_session_keeps_the_text(ImGuiTestContext* context) {
  begin(context);
  change_writing(editor(), "Tokens", [](WritingOptions& options) { options.tokens = 5; });
  write(context);
  const std::string written = editor().writing.side(Side::b).text;
  const auto file = scratch_file("writing.json");
  editor().emit(SaveSession{file});
  context->Yield(2);
  while (application().saving()) context->Yield();
  start_over(context);
  IM_CHECK(editor().writing.empty());
  IM_CHECK(open_session(editor(), file));
  settle(context);
  IM_CHECK_STR_EQ(editor().writing.side(Side::b).text.c_str(), written.c_str());
  IM_CHECK(writing_fits(editor()));
  start_over(context);
}

} // namespace

void register_decoder_tests(ImGuiTestEngine* engine) {
  const auto add = [&](const char* name, void (*test)(ImGuiTestContext*)) {
    IM_REGISTER_TEST(engine, "decoder", name)->TestFunc = test;
  };
  add("runs_like_other_models", runs_like_other_models);
  add("names_the_side_that_is_shown", names_the_side_that_is_shown);
  add("small_shares_are_not_zero", small_shares_are_not_zero);
  add("a_token_is_the_query_of_what_comes_next", a_token_is_the_query_of_what_comes_next);
  add("another_next_token_is_the_target", another_next_token_is_the_target);
  add("weights_end_at_the_diagonal", weights_end_at_the_diagonal);
  add("monotonicity_asks_for_no_row_that_is_not_there", monotonicity_asks_for_no_row_that_is_not_there);
  add("writes_under_both_schedules", writes_under_both_schedules);
  add("stops_at_once", stops_at_once);
  add("other_panels_follow", other_panels_follow);
  add("written_tokens_are_chosen_where_they_are_shown", written_tokens_are_chosen_where_they_are_shown);
  add("says_what_it_needs", says_what_it_needs);
  add("a_session_keeps_the_text", a_session_keeps_the_text);
}

} // namespace hydrascope::app::window_tests
