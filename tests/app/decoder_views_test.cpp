// What panels show of decoders: texts of tokens, losses, weights below the diagonal, grouped heads.
#include <cmath>
#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/jobs/requests.h"
#include "app/views/loss_view.h"
#include "app/views/scatter_view.h"
#include "app/views/table_views.h"
#include "app/views/vectors_view.h"
#include "app/views/weights_view.h"
#include "engine/figures/token_text.h"
#include "engine/run/quantities/last_token.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

RunResult decoder_run(const std::vector<TokenInfo>& tokens) {
  RunResult run;
  run.model.name = "tiny";
  run.model.causal = true;
  run.model.heads = 6;
  run.model.key_heads = 2;
  run.model.vocabulary = 49152;
  run.tokens = tokens;
  run.schedule.layers.resize(2);
  run.layers.resize(2);
  return run;
}

RunResult some_text() {
  return decoder_run({{"The", 0, false}, {" hedge", 1, false}, {"hog", 1, false}, {" sat\\n", 2, false}});
}

TokenLoss losses() { return {.loss = {{1, 3}, {2.0f, 0.5f, 4.0f}}, .rank = {{1, 3}, {11, 0, 99}}}; }

TEST(DecoderTokens, AreDrawnWithoutTheSpaceBeforeThem) {
  EXPECT_EQ(drawn_token(" cat"), "cat");
  EXPECT_EQ(drawn_token("ing"), "ing");
  EXPECT_EQ(drawn_token("   "), "␣␣␣");
  EXPECT_EQ(drawn_token("a\\n"), "a↵");
  EXPECT_EQ(drawn_token(" \\n"), "␣↵");
  EXPECT_EQ(drawn_token("\\"), "\\");
  EXPECT_EQ(listed_token(" cat"), "␣cat");
  EXPECT_TRUE(begins_word(" cat"));
  EXPECT_FALSE(begins_word("ing"));
  EXPECT_TRUE(ends_line(".\\n"));
}

TEST(DecoderTokens, JoinToWords) {
  const RunResult run = some_text();
  const auto words = shown_tokens(run, {.special = true, .whole_words = true});
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[1].text, "hedgehog");
  EXPECT_EQ(spaced_text(run, words[1]), " hedgehog");
  EXPECT_EQ(token_text(run, 1), "hedge");
}

TEST(LossStrip, ColoursAllTokensButTheFirst) {
  const LossStrip strip = loss_strip(some_text(), losses());
  EXPECT_TRUE(std::isnan(strip.panel.values[0]));
  EXPECT_EQ(strip.panel.values[1], 2.0);
  EXPECT_EQ(strip.panel.values[3], 4.0);
  EXPECT_EQ(strip.panel.scale.high, 4.0);
  EXPECT_TRUE(strip.panel.own_spaces);
  EXPECT_NEAR(strip.mean, 6.5 / 3, 1e-6);
  EXPECT_EQ(strip.summary, "mean 2.17 nats, perplexity 8.73 over 3 tokens");
}

TEST(LossStrip, AddsTheLossesOfAWord) {
  const LossStrip strip =
      loss_strip(some_text(), losses(), {.tokens = {.special = true, .whole_words = true}});
  ASSERT_EQ(strip.panel.values.size(), 3U);
  EXPECT_EQ(strip.panel.values[1], 2.5);
  EXPECT_EQ(strip.panel.tokens[1], " hedgehog");
}

TEST(LossStrip, SaysLossProbabilityAndRank) {
  const RunResult run = some_text();
  const auto tokens = shown_tokens(run, {});
  EXPECT_EQ(loss_details(run, losses(), tokens[0]), "“The”: nothing comes before it");
  EXPECT_EQ(loss_details(run, losses(), tokens[2]),
            "“hog”\nloss 0.5 nats, probability 60.7 %\nrank 1 of 49152 tokens");
}

TEST(LossStrip, SubtractsSideFromSide) {
  const RunResult run = some_text();
  TokenLoss other = losses();
  other.loss.values[2] = 1.0f;
  const LossStrip a = loss_strip(run, losses()), b = loss_strip(run, other);
  const LossStrip difference = loss_difference(a, b);
  EXPECT_EQ(difference.panel.values[3], 3.0);
  EXPECT_EQ(difference.panel.scale.low, -3.0);
  EXPECT_EQ(difference.panel.scale.map, ColourMap::blue_white_red);
  EXPECT_EQ(loss_difference(a, a).summary, same_note);
  EXPECT_TRUE(loss_difference(a, a).panel.tokens.empty());
}

TEST(LossFigure, HasOneScale) {
  const RunResult run = some_text();
  TokenLoss other = losses();
  other.loss.values[0] = 9.0f;
  const TokenLoss own = losses();
  const std::vector<LossItem> items = {{&run, &own, "A"}, {&run, &other, "B"}};
  const Figure figure = loss_figure(items);
  ASSERT_EQ(figure.panels.size(), 2U);
  for (const FigurePanel& panel : figure.panels) {
    EXPECT_EQ(std::get<TokensPanel>(panel).scale.high, 9.0);
    EXPECT_TRUE(std::get<TokensPanel>(panel).scale.shared);
  }
}

WeightsResult lower_triangle() {
  WeightsResult weights;
  weights.rows = {0, 1, 2, 3};
  weights.weights = {{1, 4, 4}, std::vector<float>(16, 0.0f)};
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t key = 0; key <= row; ++key)
      weights.weights.values[row * 4 + key] = 1.0f / static_cast<float>(row + 1);
  return weights;
}

void expect_grey_after_the_query(const HeatMapPanel& panel) {
  EXPECT_EQ(panel.missing, MissingCells::grey);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t key = 0; key < 4; ++key)
      EXPECT_EQ(std::isnan(panel.values.values[row * 4 + key]), key > row) << row << ' ' << key;
}

TEST(CausalWeights, AreGreyAfterTheQuery) {
  const HeatMapPanel panel = weights_panel(some_text(), lower_triangle(), nullptr, {});
  expect_grey_after_the_query(panel);
  EXPECT_EQ(panel.scale.low, 0.0);
  EXPECT_EQ(panel.scale.high, 1.0);
  // Of encoders nothing is.
  RunResult encoder = some_text();
  encoder.model.causal = false;
  EXPECT_FALSE(std::isnan(weights_panel(encoder, lower_triangle(), nullptr, {}).values.values[1]));
}

TEST(CausalWeights, AreGreyAfterAWord) {
  WeightsOptions options;
  options.tokens.whole_words = true;
  const HeatMapPanel panel = weights_panel(some_text(), lower_triangle(), nullptr, options);
  ASSERT_EQ(panel.values.shape, (std::vector<std::int64_t>{3, 3}));
  EXPECT_FALSE(std::isnan(panel.values.values[4])); // the word's own
  EXPECT_TRUE(std::isnan(panel.values.values[5]));
}

TEST(CausalWeights, OfPooledCellsThoseWithoutAnyWeightAreBlank) {
  Array cells{{2, 2}, std::vector<float>(4, 1.0f)};
  blank_later_keys(cells, {0, 8, 0, 8});
  EXPECT_TRUE(std::isnan(cells.values[1]));
  EXPECT_FALSE(std::isnan(cells.values[0]) || std::isnan(cells.values[2]) || std::isnan(cells.values[3]));
  Array below{{2, 2}, std::vector<float>(4, 1.0f)};
  blank_later_keys(below, {4, 4, 0, 4});
  EXPECT_TRUE(std::ranges::none_of(below.values, [](float value) { return std::isnan(value); }));
}

TEST(CausalWeights, MonotonicityCountsPairsWithAWeight) {
  const RunResult run = some_text();
  VectorsResult vectors;
  vectors.q = vectors.k = {{1, 4, 1}, {1, 2, 3, 4}};
  const ScatterView view = scatter_view(run, lower_triangle(), vectors, 0, false);
  EXPECT_EQ(view.pairs, 10);
}

// A capture's tokens in place of a model's.
RunResult captured_run(const CaptureInfo& capture) {
  RunResult run = some_text();
  run.model.causal = false;
  run.model.capture = std::make_shared<const CaptureInfo>(capture);
  return run;
}

RunResult padded_run() {
  CaptureInfo capture;
  capture.padding = {3};
  return captured_run(capture);
}

RunResult crossed_run() {
  CaptureInfo capture;
  capture.queries = 1;
  return captured_run(capture);
}

TEST(CausalWeights, OfACaptureAreGreyAfterTheQueryToo) {
  CaptureInfo causal;
  causal.causal = true;
  const RunResult run = captured_run(causal);
  expect_grey_after_the_query(weights_panel(run, lower_triangle(), nullptr, {}));
  WeightsOptions words;
  words.tokens.whole_words = true;
  EXPECT_TRUE(std::isnan(weights_panel(run, lower_triangle(), nullptr, words).values.values[5]));
  const HeatMapPanel padded = weights_panel(padded_run(), lower_triangle(), nullptr, {});
  EXPECT_EQ(padded.missing, MissingCells::hatched);
  EXPECT_FALSE(std::isnan(padded.values.values[1]));
}

TEST(VisibleKeys, AreThoseThatTheQueryHasAWeightOn) {
  const auto pairs = [](const RunResult& run) {
    std::string seen;
    for (const std::int64_t query : {0, 1, 2, 3}) {
      seen += query > 0 ? " " : "";
      for (const std::int64_t key : {0, 1, 2, 3}) seen += sees(run, query, key) ? 'x' : '.';
    }
    return seen;
  };
  EXPECT_EQ(pairs(some_text()), "x... xx.. xxx. xxxx");
  CaptureInfo causal;
  causal.causal = true;
  EXPECT_EQ(pairs(captured_run(causal)), pairs(some_text()));
  EXPECT_EQ(pairs(padded_run()), "xxx. xxx. xxx. ....");
  EXPECT_EQ(pairs(crossed_run()), ".xxx .... .... ....");
  RunResult hidden = some_text();
  hidden.hidden_tokens = {0};
  EXPECT_EQ(pairs(hidden), ".... .x.. .xx. .xxx");
  hidden.rows = 2; // a hidden patch is a token like others
  EXPECT_EQ(pairs(hidden), pairs(some_text()));
  EXPECT_EQ(query_tokens(some_text()), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(query_tokens(padded_run()), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(query_tokens(crossed_run()), (std::vector<std::int64_t>{0}));
}

// What the notes say last of the weight of one query on one key.
std::string weight_note(const RunResult& run, VectorsResult vectors, std::int64_t query, std::int64_t key) {
  vectors.query = query;
  return vectors_view(run, vectors, key).notes.back();
}

TEST(VectorsNotes, AreOfTheKeysThatTheQuerySees) {
  const char* const unseen = "weight = 0: the query does not attend to this key";
  VectorsResult softmax;
  softmax.q = softmax.k = {{1, 4, 1}, {1, 2, 3, 4}};
  EXPECT_EQ(weight_note(some_text(), softmax, 1, 0), "weight = 0.119"); // 1/(1+e²)
  EXPECT_EQ(weight_note(some_text(), softmax, 0, 0), "weight = 1");
  EXPECT_EQ(weight_note(some_text(), softmax, 1, 2), unseen);
  EXPECT_EQ(weight_note(padded_run(), softmax, 1, 0), "weight = 0.0159"); // 1/(1+e²+e⁴)
  EXPECT_EQ(weight_note(padded_run(), softmax, 1, 3), unseen);
  EXPECT_EQ(weight_note(padded_run(), softmax, 3, 0), unseen);
  EXPECT_EQ(weight_note(crossed_run(), softmax, 0, 1), "weight = 0.09"); // 1/(1+e+e²)
  EXPECT_EQ(weight_note(crossed_run(), softmax, 0, 0), unseen);

  VectorsResult elu = softmax;
  elu.kernel = {"elu", {}};
  elu.query_feature = {{1}, {2}};
  elu.key_features = {{4, 1}, {1, 2, 3, 4}};
  EXPECT_EQ(weight_note(some_text(), elu, 1, 0), "weight = 2 / 6 (the row's sum) = 0.333");
  EXPECT_EQ(weight_note(some_text(), elu, 1, 2), unseen);
  EXPECT_EQ(weight_note(padded_run(), elu, 1, 0), "weight = 2 / 12 (the row's sum) = 0.167");
  EXPECT_EQ(weight_note(crossed_run(), elu, 0, 3), "weight = 8 / 18 (the row's sum) = 0.444");
}

TEST(GroupedHeads, SayWhichShareKeys) {
  ModelInfo model = some_text().model;
  EXPECT_EQ(shares_keys_text(model, 4), "shares keys and values with heads 3–5");
  model.key_heads = 1;
  EXPECT_EQ(shares_keys_text(model, 4), "shares keys and values with heads 0–5");
  model.key_heads = 6;
  EXPECT_EQ(shares_keys_text(model, 4), "");
}

TEST(NextTokens, AreListedWithTheirSpaces) {
  RunResult run = some_text();
  run.query = 3;
  run.predictions = {{.index = 5, .label = " down", .probability = 0.5, .logit = 1}};
  const std::vector<const RunResult*> runs = {&run};
  const Figure figure = predictions_figure(runs);
  EXPECT_EQ(figure.title, "tiny · next tokens");
  EXPECT_EQ(std::get<BarsPanel>(figure.panels.front()).labels, std::vector<std::string>{"␣down"});
}

TEST(DecoderDocument, RowsAreThoseOfTheLastTokenByDefault) {
  Document document = decoder_document();
  EXPECT_EQ(row_query(document.scene()), last_token);
  EXPECT_EQ(row_query(document.scene(), some_text()), 3);
  document.scene().default_query = false;
  document.scene().query = 1;
  EXPECT_EQ(row_query(document.scene()), 1);
  EXPECT_EQ(row_query(small_document().scene()), 0);
}

TEST(DecoderDocument, LengthsFollowFromTheText) {
  Document document = decoder_document();
  EXPECT_EQ(expected_tokens(document), 23); // bytes, and one before all
  EXPECT_EQ(likely_tokens(document), 7);
  document.scene().input = TextInput{std::string(1000, 'a'), std::nullopt};
  EXPECT_EQ(expected_tokens(document), 512); // positions
}

} // namespace
} // namespace hydrascope::app::tests
