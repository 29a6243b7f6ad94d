// What a run tells of its heads: value-weighted weights, heads like one of them, and the deletion curve.
#include <algorithm>
#include <cmath>
#include <stop_token>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/similar_heads.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::size_t kTokens = 8;

class HeadQuantitiesOfRuns : public testing::Test {
protected:
  std::shared_ptr<const RunResult> run(const RunRequest& request) { return runner_.run(request); }
  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
  Runner runner_{std::size_t{1} << 20, fake_source(model_)};
};

TEST_F(HeadQuantitiesOfRuns, ValueWeightedWeightsAreTheWeightsTimesALengthOfEachKey) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec softmax, hydra{"hydra-cosine", {}};
  for (const bool weighted : {false, true})
    for (const KernelSpec& kernel : {softmax, hydra})
      request.quantities.add(WeightsKey{.layer = 1, .kernel = kernel, .value_weighted = weighted});
  const auto result = run(request);
  const auto read = result->quantities.all<WeightsKey>();
  ASSERT_EQ(read.size(), 4U);
  for (std::size_t kernel = 0; kernel < 2; ++kernel) {
    const WeightsResult& plain = *read[kernel].result;
    const WeightsResult& weighted = *read[2 + kernel].result;
    EXPECT_FALSE(plain.value_weighted);
    EXPECT_TRUE(weighted.value_weighted);
    EXPECT_EQ(weighted.check, plain.check);
    ASSERT_EQ(weighted.weights.shape, plain.weights.shape);
    for (std::size_t head = 0; head < FakeModel::kHeads; ++head)
      for (std::size_t key = 0; key < kTokens; ++key) {
        // Both kernels weigh the same values: the length of a key is the same in every row, for either.
        const auto at = [&](const WeightsResult& weights, std::size_t row) {
          return weights.weights.values[(head * kTokens + row) * kTokens + key];
        };
        const float length = at(*read[2].result, 0) / at(*read[0].result, 0);
        EXPECT_GT(length, 0.0F);
        for (std::size_t row = 0; row < kTokens; ++row)
          EXPECT_NEAR(at(weighted, row), std::abs(at(plain, row)) * length, 1e-5F);
      }
  }
}

TEST_F(HeadQuantitiesOfRuns, ValueWeightedTilesShowTheSameNumbers) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec softmax;
  const WeightsKey whole{.layer = 2, .kernel = softmax, .value_weighted = true};
  const TileKey part{.layer = 2,
                     .kernel = softmax,
                     .heads = {1},
                     .fusion = std::nullopt,
                     .first_row = 2,
                     .row_count = 3,
                     .first_column = 4,
                     .column_count = 4,
                     .rows = 3,
                     .columns = 4,
                     .value_weighted = true};
  request.quantities = {whole, part};
  const auto result = run(request);
  const auto head = test::read(*result, whole).weights.slice(1);
  const std::vector<float>& tile = test::read(*result, part).values.values;
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 4; ++column)
      EXPECT_FLOAT_EQ(tile[row * 4 + column], head[(2 + row) * kTokens + 4 + column]);
}

// ½ Σ p ln (p/m) + ½ Σ q ln (q/m), mean over rows.
double divergence(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double p = static_cast<double>(a[i]), q = static_cast<double>(b[i]), m = (p + q) / 2;
    sum += (p > 0 ? p * std::log(p / m) : 0) / 2 + (q > 0 ? q * std::log(q / m) : 0) / 2;
  }
  return sum / kTokens;
}

TEST_F(HeadQuantitiesOfRuns, SimilarHeadsAreMeasuredByTheirWeights) {
  RunRequest request = fake_request(kText, "2=elu");
  const SimilarHeadsKey key{HeadIndex{1, 1}};
  request.quantities = {key};
  for (int layer = 0; layer < 4; ++layer) request.quantities.add(WeightsKey{.layer = layer});
  const auto result = run(request);
  const SimilarHeads& similar = test::read(*result, key);
  const auto weights = [&](int layer) -> const Array& {
    return test::read(*result, WeightsKey{.layer = layer}).weights;
  };
  EXPECT_EQ(similar.head, (HeadIndex{1, 1}));
  EXPECT_EQ(similar.metric, HeadMetric::jensen_shannon);
  EXPECT_THAT(similar.distances.shape, testing::ElementsAre(4, FakeModel::kHeads));
  for (int layer = 0; layer < 4; ++layer)
    for (std::int64_t head = 0; head < FakeModel::kHeads; ++head)
      EXPECT_NEAR(similar.distances.slice(layer)[static_cast<std::size_t>(head)],
                  divergence(weights(layer).slice(head), weights(1).slice(1)), 1e-5);
  EXPECT_EQ(similar.distances.slice(1)[1], 0.0F);
}

TEST_F(HeadQuantitiesOfRuns, SimilarHeadsOfSignedKernelsAreMeasuredByTheCosine) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  request.quantities = {SimilarHeadsKey{HeadIndex{3, 0}}};
  const auto result = run(request);
  const SimilarHeads& similar = test::read(*result, SimilarHeadsKey{HeadIndex{3, 0}});
  EXPECT_EQ(similar.metric, HeadMetric::cosine);
  for (const float distance : similar.distances.values) {
    EXPECT_GE(distance, 0.0F);
    EXPECT_LE(distance, 2.0F);
  }
  EXPECT_NEAR(similar.distances.slice(3)[0], 0.0F, 1e-6F);
  EXPECT_GT(similar.distances.slice(3)[1], 0.0F);
  request.quantities = {SimilarHeadsKey{HeadIndex{3, 2}}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(HeadQuantitiesOfRuns, SimilarHeadsOfAnotherSplitAreUndefined) {
  RunRequest request = fake_request(kText, "2=softmax:heads=4");
  const SimilarHeadsKey key{HeadIndex{0, 0}}, of_the_split{HeadIndex{2, 0}};
  request.quantities = {key};
  const auto result = run(request);
  const Array& distances = test::read(*result, key).distances;
  EXPECT_EQ(distances.slice(0)[0], 0.0F);
  EXPECT_TRUE(std::isnan(distances.slice(2)[0]));
  EXPECT_FALSE(std::isnan(distances.slice(3)[0]));
  request.quantities = {of_the_split};
  const auto other = run(request);
  for (const float distance : test::read(*other, of_the_split).distances.values)
    EXPECT_TRUE(std::isnan(distance));
}

TEST_F(HeadQuantitiesOfRuns, DeletionHidesTokensInTheOrderOfTheFocusMap) {
  RunRequest request = fake_request(kText, "3=hydra-cosine");
  const DeletionKey key{.layer = 2, .steps = 7, .seed = 5};
  request.quantities = {FocusKey{2}, key};
  int last = 0, total = 0;
  const auto result = runner_.run(request, {}, [&](int done, int all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  });
  EXPECT_EQ(last, total);
  const DeletionResult& deletion = test::read(*result, key);
  EXPECT_EQ(deletion.target, result->target);
  EXPECT_THAT(deletion.hidden, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_NEAR(deletion.most_first.values.front(), result->target_value, 1e-5);
  EXPECT_NEAR(deletion.random.probabilities.front(), result->predictions.front().probability, 1e-5);

  // One step by hand: the word that contributes most, hidden, under the class that was predicted whole.
  const auto& contributions = test::read(*result, FocusKey{2}).contributions.values;
  const auto most = std::max_element(contributions.begin() + 1, contributions.end()) - contributions.begin();
  RunRequest hidden = fake_request(kText, "3=hydra-cosine");
  hidden.hidden_tokens = {most};
  const auto without = run(hidden);
  const auto predicted = result->predictions.front().index;
  for (const Prediction& each : without->predictions)
    if (each.index == predicted) {
      EXPECT_NEAR(deletion.most_first.values.at(1), each.logit, 1e-5);
      EXPECT_NEAR(deletion.most_first.probabilities.at(1), each.probability, 1e-5);
    }
  EXPECT_EQ(deletion.least_first.values.back(), deletion.most_first.values.back());
}

TEST_F(HeadQuantitiesOfRuns, DeletionGoesOnFromWhatIsHiddenAndMuted) {
  RunRequest request = fake_request(kText, {});
  request.hidden_tokens = {1, 2};
  request.muted_heads = {{1, 0}};
  request.quantities = {DeletionKey{.layer = 3, .steps = 10}};
  const auto result = run(request);
  const DeletionResult& deletion = test::read(*result, DeletionKey{.layer = 3, .steps = 10});
  EXPECT_EQ(deletion.hidden.back(), 5);
  EXPECT_NEAR(deletion.random.probabilities.front(), result->predictions.front().probability, 1e-5);
  EXPECT_TRUE(result->quantities.all<FocusKey>().empty());
  request.hidden_tokens = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_THROW(run(request), UsageError);
  request.hidden_tokens = {1, 2};
  request.quantities = {DeletionKey{.layer = 4, .steps = 10}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(HeadQuantitiesOfRuns, DeletionIsStoppedBetweenBlocks) {
  std::stop_source stop;
  int blocks = 0;
  FakeOptions options;
  options.before_block = [&](int) {
    if (++blocks == 11) stop.request_stop();
  };
  Runner runner(std::size_t{1} << 20, fake_source(std::make_shared<const FakeModel>(options)));
  RunRequest request = fake_request(kText, {});
  request.quantities = {DeletionKey{}};
  EXPECT_THROW(runner.run(request, stop.get_token()), Cancelled);
  EXPECT_EQ(blocks, 11);
}

} // namespace
} // namespace hydrascope
