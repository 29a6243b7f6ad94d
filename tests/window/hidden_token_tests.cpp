// Patches that are hidden and tokens that are masked, by the pointer and by the keyboard, and what is shown
// of it.
#include <algorithm>
#include <cmath>

#include "app/document/edits.h"
#include "app/views/focus_view.h"
#include "app/views/weights_view.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

void show_sentence(ImGuiTestContext* context, const std::string& text) {
  start_over(context);
  open_text(editor(), text);
  settle(context);
}

void alt_click_hides_patch(ImGuiTestContext* context) {
  start_over(context);
  const std::vector<double> before = logits(*results().any());
  const Document whole = copy_of_document();
  context->SetRef("//###focus");
  context->MouseMove("photograph");
  context->Yield(2);
  IM_CHECK(editor().hovered_token().has_value());
  const std::int64_t under = *editor().hovered_token();
  context->KeyDown(ImGuiMod_Alt);
  context->MouseClick();
  context->KeyUp(ImGuiMod_Alt);
  settle(context);
  IM_CHECK(document().scene().hidden_tokens == std::vector<std::int64_t>{under});
  IM_CHECK(document().scene().default_query); // no plain click
  const RunResult* run = results().any();
  IM_CHECK(run->hidden_tokens == std::vector<std::int64_t>{under});
  IM_CHECK(logits(*run) != before);
  // The class change: what it is compared with is what was shown before.
  IM_CHECK(run->whole.has_value());
  IM_CHECK_EQ(run->whole->predictions.size(), run->predictions.size());
  double change = 0;
  for (const Prediction& prediction : run->predictions) {
    const auto same = std::ranges::find(run->whole->predictions, prediction.index, &Prediction::index);
    change += std::abs(prediction.probability - same->probability);
  }
  IM_CHECK_GT(change, 0.0);

  // Listed in the Input panel, and shown again from there.
  context->SetRef("//###input");
  context->ItemClick(("$$" + std::to_string(under) + "/###show").c_str());
  settle(context);
  IM_CHECK(document() == whole);
  IM_CHECK(!results().any()->whole.has_value());
  IM_CHECK(logits(*results().any()) == before);
  editor().undo();
  settle(context);
  IM_CHECK(results().any()->hidden_tokens == std::vector<std::int64_t>{under});
  editor().undo();
  IM_CHECK(document() == whole);
  IM_CHECK(!editor().history().can_undo());
}

void key_masks_token(ImGuiTestContext* context) {
  show_sentence(context, "The cat that chased the mice was sleeping.");
  context->SetRef(context->WindowInfo("//###focus/sentence").ID);
  context->MouseMove("$$2/token");
  context->Yield(2);
  IM_CHECK(editor().hovered_token() == std::int64_t{2});
  context->KeyPress(ImGuiKey_H);
  settle(context);
  IM_CHECK(document().scene().hidden_tokens == std::vector<std::int64_t>{2});
  const RunResult* run = results().any();
  const auto focus = find(results(), FocusKey{document().scene().layer});
  IM_CHECK(focus.result != nullptr);
  IM_CHECK_EQ(focus.result->contributions.values.at(2), 0.0f);
  IM_CHECK(run->whole.has_value());
  IM_CHECK_LT(run->whole->similarity, 0.9999);
  // [CLS] stays: the result is read from it.
  context->MouseMove("$$0/token");
  context->Yield(2);
  context->KeyPress(ImGuiKey_H);
  context->Yield(2);
  IM_CHECK(document().scene().hidden_tokens == std::vector<std::int64_t>{2});
  context->KeyPress(ImGuiMod_Shift | ImGuiKey_H);
  settle(context);
  IM_CHECK(document().scene().hidden_tokens.empty());
}

void menu_hides_and_shows(ImGuiTestContext* context) {
  start_over(context);
  context->SetRef("//###focus");
  context->MouseMove("photograph");
  context->Yield(2);
  const std::int64_t under = *editor().hovered_token();
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/###hide");
  settle(context);
  IM_CHECK(is_hidden(document(), under));
  context->SetRef("//###focus");
  context->MouseMove("photograph");
  context->MouseClick(ImGuiMouseButton_Right);
  context->Yield(2);
  context->ItemClick("//$FOCUSED/Show all that is hidden");
  settle(context);
  IM_CHECK(document().scene().hidden_tokens.empty());
}

void another_input_has_none_hidden(ImGuiTestContext* context) {
  show_sentence(context, "Two owls sat on a branch.");
  hide_tokens(editor(), 2, 1, true);
  settle(context);
  open_text(editor(), "One.");
  settle(context);
  IM_CHECK(document().scene().hidden_tokens.empty());
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  editor().undo();
  IM_CHECK(document().scene().hidden_tokens == std::vector<std::int64_t>{2});
}

void words_are_merged(ImGuiTestContext* context) {
  show_sentence(context, "Unbelievably hydrascopic owls");
  const RunResult& run = *results().any();
  const auto pieces = static_cast<std::size_t>(
      std::ranges::count_if(run.tokens, [](const TokenInfo& token) { return token.text.starts_with("##"); }));
  IM_CHECK_GT(pieces, static_cast<std::size_t>(0));
  const auto found = find(results(), FocusKey{document().scene().layer});
  FocusOptions options{.normalise = Normalisation::none, .with_sign = true};
  const TokenMap all = focus_map(*found.run, *found.result, options);
  IM_CHECK_EQ(all.shown.size(), run.tokens.size());
  options.tokens = {.special = false, .whole_words = true};
  const TokenMap words = focus_map(*found.run, *found.result, options);
  IM_CHECK_EQ(words.shown.size(), run.tokens.size() - 2 - pieces);
  IM_CHECK_STR_EQ(words.shown.back().text.c_str(), "owls");
  double sum_of_words = 0, sum_of_pieces = 0;
  for (const float value : words.values.values) sum_of_words += static_cast<double>(value);
  for (std::size_t i = 1; i + 1 < all.values.values.size(); ++i)
    sum_of_pieces += static_cast<double>(all.values.values[i]);
  IM_CHECK_LT(std::abs(sum_of_words - sum_of_pieces), 1e-5 * (1 + std::abs(sum_of_pieces)));

  // In the window: fewer words, and one that is hidden is hidden with all its pieces.
  context->SetRef("//###input");
  context->ItemClick("whole words");
  context->ItemClick("[CLS], [SEP]");
  settle(context);
  IM_CHECK(document().view.tokens == (TokenDisplay{.special = false, .whole_words = true}));
  context->SetRef(context->WindowInfo("//###focus/sentence").ID);
  context->MouseMove("$$0/token");
  context->Yield(2);
  IM_CHECK(editor().hovered_token() == std::int64_t{1});
  IM_CHECK_EQ(editor().hovered_count(), words.shown.front().count);
  context->KeyPress(ImGuiKey_H);
  settle(context);
  IM_CHECK_EQ(document().scene().hidden_tokens.size(), static_cast<std::size_t>(words.shown.front().count));
}

void weights_of_words(ImGuiTestContext*) {
  // Two pieces of one word, then another: rows stay distributions.
  const Array weights{{3, 3}, {0.2f, 0.3f, 0.5f, 0.4f, 0.4f, 0.2f, 0.1f, 0.1f, 0.8f}};
  const std::vector<ShownToken> shown = {{0, 2, "owls"}, {2, 1, "sat"}};
  const Array merged = shown_weights(weights, {}, shown);
  IM_CHECK(merged.shape == (std::vector<std::int64_t>{2, 2}));
  const std::vector<float> expected = {0.65f, 0.35f, 0.2f, 0.8f};
  for (std::size_t i = 0; i < expected.size(); ++i)
    IM_CHECK_LT(std::abs(merged.values[i] - expected[i]), 1e-6f);
  const std::vector<std::int64_t> rows = {2};
  const Array one{{1, 3}, {0.1f, 0.1f, 0.8f}};
  IM_CHECK(shown_weights(one, rows, shown).shape == (std::vector<std::int64_t>{1, 2}));
}

} // namespace

void register_hidden_token_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "hidden", "alt_click_hides_patch")->TestFunc = alt_click_hides_patch;
  IM_REGISTER_TEST(engine, "hidden", "key_masks_token")->TestFunc = key_masks_token;
  IM_REGISTER_TEST(engine, "hidden", "menu_hides_and_shows")->TestFunc = menu_hides_and_shows;
  IM_REGISTER_TEST(engine, "hidden", "another_input_has_none_hidden")->TestFunc =
      another_input_has_none_hidden;
  IM_REGISTER_TEST(engine, "hidden", "words_are_merged")->TestFunc = words_are_merged;
  IM_REGISTER_TEST(engine, "hidden", "weights_of_words")->TestFunc = weights_of_words;
}

} // namespace hydrascope::app::window_tests
