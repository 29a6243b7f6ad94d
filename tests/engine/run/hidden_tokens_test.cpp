// Runs with hidden tokens: told apart from whole ones in the cache, and compared with them in the result.
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::size_t kCacheBytes = std::size_t{1} << 20;

RunRequest hiding(std::vector<std::int64_t> tokens) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  request.hidden_tokens = std::move(tokens);
  request.quantities = {LogitsKey{}};
  return request;
}

TEST(HiddenTokensRun, ComparesWithTheWholeInput) {
  const auto model = std::make_shared<const FakeModel>(FakeOptions{});
  Runner runner(kCacheBytes, fake_source(model));
  const auto whole = runner.run(hiding({}));
  EXPECT_FALSE(whole->whole.has_value());
  EXPECT_TRUE(whole->hidden_tokens.empty());
  const auto runs_before = model->runs();

  const auto hidden = runner.run(hiding({2, 5}));
  EXPECT_EQ(hidden->hidden_tokens, (std::vector<std::int64_t>{2, 5}));
  EXPECT_NE(test::logits(*hidden), test::logits(*whole));
  ASSERT_TRUE(hidden->whole.has_value());
  ASSERT_EQ(hidden->whole->predictions.size(), whole->predictions.size());
  for (std::size_t i = 0; i < whole->predictions.size(); ++i) {
    EXPECT_EQ(hidden->whole->predictions[i].index, whole->predictions[i].index);
    EXPECT_EQ(hidden->whole->predictions[i].probability, whole->predictions[i].probability);
  }
  EXPECT_LT(hidden->whole->similarity, 1.0);
  EXPECT_GT(hidden->whole->similarity, -1.0);
  // The whole input came from the cache: each block ran once more, for the hidden tokens' sake.
  for (std::size_t layer = 0; layer < runs_before.size(); ++layer)
    EXPECT_EQ(model->runs()[layer], runs_before[layer] + 1);
  ASSERT_FALSE(hidden->notes.empty());
  EXPECT_EQ(hidden->notes.back(), "2 tokens hidden");
}

TEST(HiddenTokensRun, IsNotMistakenForAnotherInTheCache) {
  const auto model = std::make_shared<const FakeModel>(FakeOptions{});
  Runner warm(kCacheBytes, fake_source(model));
  const auto whole = warm.run(hiding({}));
  const auto one = warm.run(hiding({2}));
  const auto other = warm.run(hiding({3}));
  const auto again = warm.run(hiding({}));
  EXPECT_EQ(test::logits(*again), test::logits(*whole));
  EXPECT_NE(test::logits(*one), test::logits(*other));
  Runner fresh(kCacheBytes, fake_source(model));
  EXPECT_EQ(test::logits(*fresh.run(hiding({3}))), test::logits(*other));
}

TEST(HiddenTokensRun, GivesNothingToAMaskedToken) {
  Runner runner(kCacheBytes, fake_source(std::make_shared<const FakeModel>(FakeOptions{})));
  RunRequest request = hiding({4});
  const WeightsKey first_row{.layer = 1, .rows = {0}};
  request.quantities = {FocusKey{1}, first_row};
  const auto result = runner.run(request);
  const std::vector<float>& contributions = test::read(*result, FocusKey{1}).contributions.values;
  EXPECT_EQ(contributions.at(4), 0.0F);
  EXPECT_NE(contributions.at(3), 0.0F);
  const Array& weights = test::read(*result, first_row).weights;
  for (std::int64_t head = 0; head < weights.extent(0); ++head)
    EXPECT_EQ(weights.values.at(static_cast<std::size_t>(head * 8 + 4)), 0.0F);
}

TEST(HiddenTokensRun, RefusesTokensThatCannotBeHidden) {
  Runner runner(kCacheBytes, fake_source(std::make_shared<const FakeModel>(FakeOptions{})));
  EXPECT_THROW(runner.run(hiding({0})), UsageError);
  EXPECT_THROW(runner.run(hiding({8})), UsageError);
}

} // namespace
} // namespace hydrascope
