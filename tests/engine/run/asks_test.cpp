// What a run reads off its layers: weights, tables, rollout, hidden states.
#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::int64_t kTokens = 8;

class AsksTest : public testing::Test {
protected:
  std::shared_ptr<const RunResult> run(const RunRequest& request) { return runner_.run(request); }
  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
  Runner runner_{std::size_t{1} << 20, fake_source(model_)};
};

const HeadTable& table(const RunResult& result, const std::string& name, bool in_place) {
  for (const HeadTable& candidate : result.tables)
    if (candidate.ask.quantity == name && !candidate.ask.kernel == in_place) return candidate;
  throw std::runtime_error("no table " + name);
}

TEST_F(AsksTest, WeightsOfTheOwnKernelAndOfComparedOnes) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  request.asks.weights = {{2, {}, {}, false},
                          {1, {KernelSpec{"softmax", {}}, KernelSpec{"hedgehog", {}}}, {0, 5}, false}};
  const auto result = run(request);
  ASSERT_EQ(result->weights.size(), 3U);
  const WeightsResult& own = result->weights[0];
  EXPECT_EQ(own.kernel.name, "hydra-cosine");
  EXPECT_TRUE(own.derived_signed);
  EXPECT_TRUE(own.untrained);
  EXPECT_THAT(own.weights.shape, testing::ElementsAre(FakeModel::kHeads, kTokens, kTokens));
  for (std::size_t i = 1; i < 3; ++i) {
    const WeightsResult& weights = result->weights[i];
    EXPECT_THAT(weights.rows, testing::ElementsAre(0, 5));
    EXPECT_THAT(weights.weights.shape, testing::ElementsAre(FakeModel::kHeads, 2, kTokens));
    EXPECT_FALSE(weights.derived_signed);
    EXPECT_LT(weights.check, 1e-5);
    for (std::int64_t row = 0; row < 2 * FakeModel::kHeads; ++row) {
      double sum = 0;
      for (std::int64_t key = 0; key < kTokens; ++key)
        sum += static_cast<double>(weights.weights.values[static_cast<std::size_t>(row * kTokens + key)]);
      EXPECT_NEAR(sum, 1.0, 1e-5);
    }
  }
  EXPECT_FALSE(result->weights[1].untrained);
  EXPECT_TRUE(result->weights[2].untrained);
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

TEST_F(AsksTest, VectorsMultiplyToTheWeights) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec softmax, hedgehog{"hedgehog", {}};
  request.asks.weights = {{1, {softmax, hedgehog}, {3}, false}};
  request.asks.vectors = {{.layer = 1, .kernels = {softmax, hedgehog}, .head = 1, .query = 3}};
  const auto result = run(request);
  ASSERT_EQ(result->vectors.size(), 2U);
  const VectorsResult& plain = result->vectors[0];
  EXPECT_TRUE(plain.query_feature.empty());
  ASSERT_THAT(plain.q.shape, testing::ElementsAre(FakeModel::kHeads, kTokens, FakeModel::kWidth / 2));
  const std::size_t width = FakeModel::kWidth / 2;
  const auto query = plain.q.slice(1).subspan(3 * width, width);
  std::vector<double> scores, similarities;
  double scores_sum = 0, similarities_sum = 0;
  for (std::size_t key = 0; key < kTokens; ++key) {
    scores.push_back(std::exp(dot(query, plain.k.slice(1).subspan(key * width, width)) / std::sqrt(width)));
    scores_sum += scores.back();
    similarities.push_back(dot(result->vectors[1].query_feature.values,
                               result->vectors[1].key_features.slice(static_cast<std::int64_t>(key))));
    similarities_sum += similarities.back();
  }
  EXPECT_TRUE(result->vectors[1].rescaled);
  EXPECT_TRUE(result->vectors[1].untrained);
  for (std::size_t key = 0; key < kTokens; ++key) {
    EXPECT_NEAR(scores[key] / scores_sum, static_cast<double>(result->weights[0].weights.slice(1)[key]),
                1e-5);
    EXPECT_NEAR(similarities[key] / similarities_sum,
                static_cast<double>(result->weights[1].weights.slice(1)[key]), 1e-5);
  }
  EXPECT_TRUE(result->focus.empty());
}

TEST_F(AsksTest, AHydraLayersVectorsHaveTheGradientOfItsFocusMap) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  request.asks.focus_layers = {2};
  request.asks.vectors = {{.layer = 2, .kernels = {}, .head = 0, .query = 0, .gradient = true}};
  const auto result = run(request);
  ASSERT_EQ(result->vectors.size(), 1U);
  const VectorsResult& vectors = result->vectors[0];
  ASSERT_THAT(vectors.global.shape, testing::ElementsAre(FakeModel::kWidth));
  ASSERT_THAT(vectors.gradient.shape, testing::ElementsAre(FakeModel::kWidth));
  // out_c·g is what the focus map's contributions sum to.
  double total = 0;
  for (std::size_t f = 0; f < vectors.global.values.size(); ++f) {
    double filled = 0; // feature by feature, the tokens fill the global vector
    for (std::int64_t token = 0; token < kTokens; ++token)
      filled += static_cast<double>(vectors.key_features.slice(token)[f]) *
                static_cast<double>(vectors.values.slice(token)[f]);
    EXPECT_NEAR(filled, static_cast<double>(vectors.global.values[f]), 1e-5);
    EXPECT_EQ(vectors.query_feature.values[f], vectors.query_features.slice(0)[f]);
    total += static_cast<double>(vectors.query_feature.values[f]) * filled *
             static_cast<double>(vectors.gradient.values[f]);
  }
  EXPECT_NEAR(total, result->focus.front().total, 1e-5);
  request.asks.focus_layers.clear();
  const auto alone = run(request);
  EXPECT_TRUE(alone->focus.empty());
  EXPECT_EQ(alone->vectors[0].gradient.values, vectors.gradient.values);
}

TEST_F(AsksTest, MonotonicityOfOwnAndOfTeacherForcedKernels) {
  RunRequest request = fake_request(kText, "2=elu");
  request.asks.head_tables = {{"monotonicity", {}}, {"monotonicity", KernelSpec{"elu", {}}}};
  const auto result = run(request);
  ASSERT_EQ(result->tables.size(), 2U);
  const HeadTable& own = table(*result, "monotonicity", true);
  const HeadTable& forced = table(*result, "monotonicity", false);
  for (std::int64_t layer = 0; layer < 4; ++layer) {
    for (const float rho : own.values.slice(layer)) {
      if (layer == 2)
        EXPECT_LT(rho, 0.999F);
      else
        EXPECT_NEAR(rho, 1.0F, 1e-5F);
    }
  }
  // Up to layer 2 both runs are the same.
  for (std::size_t head = 0; head < FakeModel::kHeads; ++head)
    EXPECT_NEAR(own.values.slice(2)[head], forced.values.slice(2)[head], 1e-5F);
}

TEST_F(AsksTest, TilesAreTheLargestWeightsUnderEachCell) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec hydra{"hydra-cosine", {}};
  request.asks.weights = {{1, {hydra}, {}, false}};
  request.asks.tiles = {
      {.layer = 1, .kernel = hydra, .heads = {1}, .fusion = std::nullopt, .rows = 100, .columns = 100},
      {.layer = 1,
       .kernel = hydra,
       .heads = {},
       .fusion = HeadFusion::mean,
       .first_row = 2,
       .row_count = 4,
       .first_column = 0,
       .column_count = 8,
       .rows = 2,
       .columns = 4}};
  const auto result = run(request);
  ASSERT_EQ(result->tiles.size(), 2U);
  const Array& weights = result->weights[0].weights;
  EXPECT_THAT(result->tiles[0].values.shape, testing::ElementsAre(1, kTokens, kTokens));
  EXPECT_THAT(result->tiles[0].values.values, testing::ElementsAreArray(weights.slice(1)));
  EXPECT_TRUE(result->tiles[0].derived_signed);
  ASSERT_THAT(result->tiles[1].values.shape, testing::ElementsAre(1, 2, 4));
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      float largest = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t cell = (2 + row * 2 + i / 2) * kTokens + column * 2 + i % 2;
        const float mean = (weights.slice(0)[cell] + weights.slice(1)[cell]) / 2;
        if (std::abs(mean) > std::abs(largest)) largest = mean;
      }
      EXPECT_NEAR(result->tiles[1].values.values[row * 4 + column], largest, 1e-6F);
    }
  }
  request.asks.tiles = {
      {.layer = 1, .kernel = hydra, .heads = {}, .fusion = std::nullopt, .first_row = 6, .row_count = 9}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(AsksTest, TeacherForcedWeightsAreThoseOfTheSoftmaxRun) {
  RunRequest softmax = fake_request(kText);
  softmax.asks.weights = {{3, {KernelSpec{"softmax", {}}}, {}, false}};
  const auto reference = run(softmax);

  RunRequest request = fake_request(kText, "0,1=hydra-cosine");
  request.asks.weights = {{3, {KernelSpec{"softmax", {}}}, {}, true},
                          {3, {KernelSpec{"softmax", {}}}, {}, false}};
  const auto result = run(request);
  ASSERT_EQ(result->weights.size(), 2U);
  EXPECT_TRUE(result->weights[0].teacher_forced);
  EXPECT_EQ(result->weights[0].weights.values, reference->weights[0].weights.values);
  EXPECT_NE(result->weights[1].weights.values, reference->weights[0].weights.values);
}

TEST_F(AsksTest, TablesInPlace) {
  RunRequest request = fake_request(kText, "1=sdpa;2=hydra-cosine;3=elu");
  request.asks.head_tables = {{"entropy", {}}, {"kl", {}}, {"change", {}}};
  const auto result = run(request);
  const HeadTable& entropy = table(*result, "entropy", true);
  const HeadTable& kl = table(*result, "kl", true);
  const Array& change = table(*result, "change", true).values;
  EXPECT_THAT(entropy.values.shape, testing::ElementsAre(4, FakeModel::kHeads));
  EXPECT_THAT(change.shape, testing::ElementsAre(4, FakeModel::kHeads, 3));
  for (std::size_t head = 0; head < FakeModel::kHeads; ++head) {
    EXPECT_GT(entropy.values.slice(0)[head], 0.0F);
    EXPECT_LT(entropy.values.slice(0)[head], std::log(static_cast<float>(kTokens)) + 1e-5F);
    EXPECT_EQ(kl.values.slice(0)[head], 0.0F);
    EXPECT_NEAR(kl.values.slice(1)[head], 0.0F, 1e-5F);
    EXPECT_TRUE(std::isnan(entropy.values.slice(2)[head])); // signed: undefined
    EXPECT_TRUE(std::isnan(kl.values.slice(2)[head]));
    EXPECT_GT(kl.values.slice(3)[head], 0.0F);
    EXPECT_NEAR(change.slice(0)[3 * head], 1.0F, 1e-6F);
    EXPECT_NEAR(change.slice(1)[3 * head + 2], 0.0F, 1e-4F);
    EXPECT_GT(change.slice(2)[3 * head + 2], 0.0F);
  }
}

TEST_F(AsksTest, KnownTablesRunNoBlockAgainAndStayTheSame) {
  RunRequest request = fake_request(kText, "3=elu");
  request.asks.head_tables = {{"entropy", {}}, {"kl", {}}};
  const auto first = run(request);
  const auto second = run(request);
  EXPECT_THAT(model_->runs(), testing::Each(1));
  EXPECT_EQ(table(*first, "kl", true).values.values, table(*second, "kl", true).values.values);
  run(fake_request(kText, "3=hydra-cosine"));
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 1, 2));
}

TEST_F(AsksTest, TeacherForcedTables) {
  RunRequest request = fake_request(kText, "0-3=hydra-cosine");
  for (const KernelSpec& kernel : {KernelSpec{"softmax", {}}, KernelSpec{"hedgehog", {}}})
    for (const char* quantity : {"entropy", "kl", "change"})
      request.asks.head_tables.push_back({quantity, kernel});
  const auto result = run(request);
  ASSERT_EQ(result->tables.size(), 6U);
  EXPECT_EQ(result->tables[1].ask.quantity, "kl");
  EXPECT_EQ(result->tables[1].kernel.name, "softmax");
  for (const float value : result->tables[1].values.values) EXPECT_EQ(value, 0.0F);
  EXPECT_EQ(result->tables[4].ask.quantity, "kl");
  EXPECT_EQ(result->tables[4].kernel.name, "hedgehog");
  EXPECT_TRUE(result->tables[4].untrained);
  for (const float value : result->tables[4].values.values) EXPECT_GT(value, 0.0F);
  EXPECT_THAT(result->tables[5].values.shape, testing::ElementsAre(4, FakeModel::kHeads, 3));
  EXPECT_EQ(result->predictions.size(), 3U);
}

TEST_F(AsksTest, AttentionRowsAreRowsOfTheWeights) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  request.asks.weights.resize(2);
  request.asks.weights[0].layer = 1;
  request.asks.weights[1].layer = 2;
  request.asks.attention_rows = {
      {.layer = 1, .query = 3}, {.layer = 2, .query = std::nullopt}, {.layer = 1, .query = std::nullopt}};
  const auto result = run(request);
  ASSERT_EQ(result->attention_rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const AttentionRowResult& row = result->attention_rows[i];
    EXPECT_EQ(row.ask, request.asks.attention_rows[i]);
    const Array& whole = result->weights[i == 1 ? 1 : 0].weights;
    EXPECT_EQ(row.derived_signed, i == 1);
    ASSERT_THAT(row.weights.shape, testing::ElementsAre(whole.extent(0), kTokens));
    for (std::int64_t head = 0; head < whole.extent(0); ++head) {
      for (std::int64_t key = 0; key < kTokens; ++key) {
        const auto at = [&](std::int64_t query) {
          return static_cast<double>(whole.slice(head)[static_cast<std::size_t>(query * kTokens + key)]);
        };
        double expected = 0;
        for (std::int64_t query = 0; query < kTokens; ++query) expected += at(query) / kTokens;
        if (row.ask.query) expected = at(*row.ask.query);
        EXPECT_NEAR(static_cast<double>(row.weights.slice(head)[static_cast<std::size_t>(key)]), expected,
                    1e-6);
      }
    }
  }
  request.asks.attention_rows = {{.layer = 1, .query = kTokens}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(AsksTest, RolloutRowsSumToOneAndHiddenStatesAreAllThere) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  request.asks.rollout = RolloutKey{.discard = 0.2};
  request.asks.hidden = true;
  const auto result = run(request);
  ASSERT_TRUE(result->rollout);
  EXPECT_TRUE(result->rollout->magnitudes);
  const Array& rollout = result->rollout->weights;
  EXPECT_THAT(rollout.shape, testing::ElementsAre(1, kTokens, kTokens));
  for (std::int64_t row = 0; row < kTokens; ++row) {
    double sum = 0;
    for (std::int64_t key = 0; key < kTokens; ++key)
      sum += static_cast<double>(rollout.values[static_cast<std::size_t>(row * kTokens + key)]);
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
  ASSERT_EQ(result->hidden.size(), 5U);
  for (const Array& hidden : result->hidden)
    EXPECT_THAT(hidden.shape, testing::ElementsAre(1, kTokens, FakeModel::kWidth));
  request.asks.rollout->heads = {1};
  EXPECT_NE(run(request)->rollout->weights.values, rollout.values);
  request.asks.rollout->discard = 1.5;
  EXPECT_THROW(run(request), UsageError);
}

} // namespace
} // namespace hydrascope
