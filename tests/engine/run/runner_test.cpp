#include "engine/run/runner.h"

#include <cmath>
#include <numeric>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/layer_times.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/run.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/touched_pages.h"

namespace hydrascope {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{1} << 20;
const char* const kText = "the cat sat on the warm mat";

double sum(const Array& array) { return std::accumulate(array.values.begin(), array.values.end(), 0.0); }
double magnitude(const Array& array) {
  double total = 0;
  for (const float value : array.values) total += std::abs(static_cast<double>(value));
  return total;
}

class RunnerTest : public testing::Test {
protected:
  void use(FakeOptions options) {
    model_ = std::make_shared<const FakeModel>(std::move(options));
    runner_ = std::make_unique<Runner>(kCacheBytes, fake_source(model_));
  }
  std::shared_ptr<const RunResult> run(const RunRequest& request) { return runner_->run(request); }

  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
  std::unique_ptr<Runner> runner_ = std::make_unique<Runner>(kCacheBytes, fake_source(model_));
};

TEST_F(RunnerTest, GivesPredictionsTokensAndLayers) {
  const auto result = run(fake_request(kText, "3=hydra-cosine"));
  ASSERT_EQ(result->predictions.size(), 3U);
  double total = 0;
  for (const Prediction& prediction : result->predictions) total += prediction.probability;
  EXPECT_NEAR(total, 1.0, 1e-9);
  EXPECT_GE(result->predictions[0].probability, result->predictions[1].probability);
  ASSERT_EQ(result->tokens.size(), 8U);
  EXPECT_EQ(result->tokens[2].text, "cat");
  ASSERT_EQ(result->layers.size(), 4U);
  EXPECT_EQ(result->layers[3].kernel.name, "hydra-cosine");
  EXPECT_TRUE(result->layers[3].untrained);
  EXPECT_FALSE(result->layers[0].untrained);
  EXPECT_FALSE(result->layers[0].path.empty());
  EXPECT_TRUE(result->quantities.keys().empty()); // nothing was asked for
}

TEST_F(RunnerTest, IndependentLabelsHaveAProbabilityEach) {
  FakeOptions options;
  options.independent_labels = true;
  use(options);
  RunRequest request = fake_request(kText);
  const DeletionKey deletion{.layer = 3, .steps = 4};
  request.quantities = {deletion};
  const auto result = run(request);
  ASSERT_EQ(result->predictions.size(), 3U);
  for (const Prediction& prediction : result->predictions)
    EXPECT_NEAR(prediction.probability, 1 / (1 + std::exp(-prediction.logit)), 1e-12);
  EXPECT_GE(result->predictions[0].probability, result->predictions[1].probability);
  EXPECT_NEAR(test::read(*result, deletion).random.probabilities.front(), result->predictions[0].probability,
              1e-5);
}

TEST_F(RunnerTest, TheNumberOfThreadsHoldsForTheRunAlone) {
  const ThreadCount two(2);
  RunRequest request = fake_request(kText);
  request.execution.threads = 1;
  EXPECT_EQ(run(request)->threads, 1);
  EXPECT_EQ(at::get_num_threads(), 2);
  request.execution.threads = 0;
  EXPECT_EQ(run(request)->threads, 2);
  request.execution.threads = 1;
  request.quantities = {WeightsKey{.layer = 99}}; // no such layer
  EXPECT_THROW(run(request), UsageError);
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST_F(RunnerTest, PeakMemoryIsThatOfTheRunAlone) {
  constexpr std::int64_t bytes = 192 << 20;
  if (!reset_peak_resident_bytes()) GTEST_SKIP() << "the system does not allow it";
  run(fake_request(kText)); // what later runs keep
  test::touch_pages(bytes);
  const std::int64_t before = peak_resident_bytes();
  const std::int64_t peak = run(fake_request(kText))->peak_bytes;
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, before - bytes / 2);
}

TEST_F(RunnerTest, TimedPassesRunEveryLayerWithoutTheCache) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  request.quantities = {LogitsKey{}};
  const auto plain = run(request);
  EXPECT_TRUE(plain->quantities.all<LayerTimesKey>().empty());
  request.quantities.add(LayerTimesKey{.passes = 3});
  std::vector<int> totals;
  const auto timed = runner_->run(request, {}, [&](int, int total) { totals.push_back(total); });
  EXPECT_THAT(model_->runs(), testing::ElementsAre(5, 5, 5, 5)); // once before, one that warms up, three
  const auto& times = test::read(*timed, LayerTimesKey{.passes = 3});
  ASSERT_EQ(times.size(), 3U);
  for (const std::vector<double>& pass : times) {
    ASSERT_EQ(pass.size(), 4U);
    for (const double seconds : pass) EXPECT_GT(seconds, 0);
  }
  EXPECT_TRUE(timed->layers[0].cached); // the pass itself was known
  EXPECT_EQ(test::logits(*timed), test::logits(*plain));
  EXPECT_EQ(totals.size(), 16U);
  EXPECT_EQ(totals.back(), 16);

  std::stop_source stop;
  EXPECT_THROW(runner_->run(request, stop.get_token(), [&](int, int) { stop.request_stop(); }), Cancelled);
  for (const int none : {0, -1}) {
    request.quantities = {LayerTimesKey{.passes = none}};
    EXPECT_THROW(run(request), UsageError);
  }
}

TEST_F(RunnerTest, SaysWhichLayersRanWithGradients) {
  RunRequest request = fake_request(kText);
  request.quantities = {FocusKey{2}};
  const auto result = run(request);
  EXPECT_FALSE(result->layers[1].differentiable);
  EXPECT_TRUE(result->layers[2].differentiable);
  EXPECT_TRUE(result->layers[3].differentiable);
}

TEST_F(RunnerTest, CachedPrefixGivesTheSameBits) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  request.quantities = {LogitsKey{}};
  run(fake_request(kText));
  const auto continued = run(request);
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 1, 2));
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_TRUE(continued->layers[static_cast<std::size_t>(layer)].cached);
    EXPECT_EQ(continued->layers[static_cast<std::size_t>(layer)].seconds, 0);
    EXPECT_FALSE(continued->layers[static_cast<std::size_t>(layer)].path.empty());
  }
  EXPECT_FALSE(continued->layers[3].cached);

  Runner fresh(kCacheBytes, fake_source(model_));
  EXPECT_EQ(test::logits(*fresh.run(request)), test::logits(*continued));
}

TEST_F(RunnerTest, FocusGivesTheSameBitsFromTheCacheAsWithoutIt) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  request.quantities = {FocusKey{2}, FocusKey{3}};
  run(fake_request(kText));
  const auto warm = run(request);
  const auto again = run(request);
  Runner fresh(kCacheBytes, fake_source(model_));
  const auto cold = fresh.run(request);
  for (const FocusKey key : {FocusKey{2}, FocusKey{3}}) {
    const std::vector<float>& expected = test::read(*cold, key).contributions.values;
    EXPECT_EQ(test::read(*warm, key).contributions.values, expected);
    EXPECT_EQ(test::read(*again, key).contributions.values, expected);
  }
  EXPECT_TRUE(warm->layers[0].cached);
  EXPECT_FALSE(warm->layers[2].cached);
}

TEST_F(RunnerTest, AnotherInputOrEarlierKernelStartsAnew) {
  run(fake_request(kText));
  run(fake_request("another text"));
  run(fake_request(kText, "1=elu"));
  EXPECT_THAT(model_->runs(), testing::ElementsAre(2, 3, 3, 3));
}

TEST_F(RunnerTest, ACacheWithoutRoomChangesNothing) {
  Runner none(0, fake_source(model_));
  RunRequest request = fake_request(kText);
  request.quantities = {LogitsKey{}};
  const auto first = none.run(request);
  const auto second = none.run(request);
  EXPECT_FALSE(second->layers[0].cached);
  EXPECT_EQ(test::logits(*first), test::logits(*second));
}

TEST_F(RunnerTest, FocusContributionsSumToTheTotal) {
  for (const char* kernel : {"softmax", "sdpa", "hydra-cosine", "elu", "hedgehog"}) {
    RunRequest request = fake_request(kText, std::string("2,3=") + kernel);
    request.quantities = {FocusKey{1}, FocusKey{2}, FocusKey{3}};
    for (const bool all : {false, true}) {
      request.default_query = false;
      request.query = all ? std::optional<std::int64_t>() : 0;
      const auto result = run(request);
      const auto maps = result->quantities.all<FocusKey>();
      ASSERT_EQ(maps.size(), 3U);
      for (const auto& map : maps) {
        const FocusResult& focus = *map.result;
        EXPECT_NEAR(sum(focus.contributions), focus.total, 1e-4 * magnitude(focus.contributions)) << kernel;
        EXPECT_GT(magnitude(focus.contributions), 0) << kernel;
        EXPECT_TRUE(!all || focus.share == 1.0);
      }
    }
  }
}

TEST_F(RunnerTest, LastLayersClassTokenCarriesEverythingThatAClassTokenHeadReads) {
  RunRequest request = fake_request(kText);
  request.quantities = {FocusKey{3}};
  const auto result = run(request);
  ASSERT_TRUE(result->query.has_value());
  EXPECT_EQ(*result->query, 0);
  EXPECT_NEAR(test::read(*result, FocusKey{3}).share, 1.0, 1e-9);
  EXPECT_EQ(result->target, "logit of " + result->predictions[0].label);
  EXPECT_NEAR(result->target_value, result->predictions[0].logit, 1e-5);

  request.default_query = false;
  request.query = 2;
  EXPECT_TRUE(test::read(*run(request), FocusKey{3}).zero_gradient);
}

TEST_F(RunnerTest, QueryIsAllWhereTheTargetReadsMoreThanTheClassToken) {
  RunRequest request = fake_request(kText);
  request.quantities = {FocusKey{3}};
  use({4, FakeHead::first_and_mean, {}});
  EXPECT_FALSE(run(request)->query.has_value());

  use({4, FakeHead::none, {}});
  const auto pooled = run(request);
  EXPECT_FALSE(pooled->query.has_value());
  EXPECT_TRUE(pooled->predictions.empty());
  EXPECT_EQ(pooled->target, "embedding norm");

  request.target = parse_target("similarity:the dog slept");
  const auto similar = run(request);
  EXPECT_FALSE(similar->query.has_value());
  EXPECT_LE(std::abs(similar->target_value), 1.0);
  request.target = parse_target(std::string("similarity:") + kText);
  EXPECT_NEAR(run(request)->target_value, 1.0, 1e-5);
}

TEST_F(RunnerTest, TargetsByClass) {
  RunRequest request = fake_request(kText);
  request.quantities = {FocusKey{3}};
  for (const char* target : {"class:1", "class:espresso", "class:Espresso"}) {
    request.target = parse_target(target);
    EXPECT_EQ(run(request)->target, "logit of espresso");
  }
  request.target = parse_target("class:tabby cat");
  EXPECT_EQ(run(request)->target, "logit of tabby, tabby cat");
  request.target = parse_target("class:9");
  EXPECT_THROW(run(request), UsageError);
  request.target = parse_target("class:zebra");
  EXPECT_THROW(run(request), UsageError);
  use({4, FakeHead::none, {}});
  request.target = parse_target("class:1");
  EXPECT_THROW(run(request), UsageError);
  EXPECT_THROW(parse_target("classes:1"), UsageError);
  EXPECT_THROW(parse_target("class:"), UsageError);
}

TEST_F(RunnerTest, RefusesWhatDoesNotExist) {
  RunRequest request = fake_request(kText);
  request.quantities = {FocusKey{4}};
  EXPECT_THROW(run(request), UsageError);
  request = fake_request(kText);
  request.quantities = {WeightsKey{.layer = 0, .rows = {8}}};
  EXPECT_THROW(run(request), UsageError);
  request = fake_request(kText);
  request.default_query = false;
  request.query = 8;
  EXPECT_THROW(run(request), UsageError);
  EXPECT_THROW(run(fake_request(kText, "7=softmax")), UsageError);
  EXPECT_THROW(run(fake_request(kText, "1=softmaxx")), UsageError);
  request = fake_request(kText);
  request.execution.device = "abacus";
  EXPECT_THROW(run(request), UsageError);
  request = fake_request(kText);
  request.input = ImageInput{std::make_shared<const Image>(Image{1, 1, {0, 0, 0}}), "dot", {}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(RunnerTest, StopsBetweenBlocks) {
  std::stop_source stop;
  use({4, FakeHead::first_token, [&](int layer) {
         if (layer == 1) stop.request_stop();
       }});
  EXPECT_THROW(runner_->run(fake_request(kText), stop.get_token()), Cancelled);
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 0, 0));
  const auto result = run(fake_request(kText)); // what was done is not lost
  EXPECT_TRUE(result->layers[0].cached);
  EXPECT_TRUE(result->layers[1].cached);
}

TEST_F(RunnerTest, ReportsProgressUpToTheEnd) {
  std::vector<std::pair<int, int>> steps;
  runner_->run(fake_request(kText), {}, [&](int done, int total) { steps.emplace_back(done, total); });
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps.back(), std::pair(4, 4));
}

} // namespace
} // namespace hydrascope
