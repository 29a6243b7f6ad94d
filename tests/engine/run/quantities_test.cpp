// What a run reads off its layers: weights, tables, rollout, hidden states.
#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/runner.h"
#include "tests/engine/run/fake_model.h"
#include "tests/engine/run/read_result.h"
#include "tests/support/checkout.h"

namespace hydrascope {
namespace {

const char* const kText = "the cat sat on the warm mat";
constexpr std::int64_t kTokens = 8;

class QuantitiesTest : public testing::Test {
protected:
  std::shared_ptr<const RunResult> run(const RunRequest& request) { return runner_.run(request); }
  std::shared_ptr<const FakeModel> model_ = std::make_shared<const FakeModel>(FakeOptions{});
  Runner runner_{std::size_t{1} << 20, fake_source(model_)};
};

const HeadTable& table(const RunResult& result, const std::string& name, bool in_place) {
  for (const auto& [key, candidate] : result.quantities.all<HeadTableKey>())
    if (key.quantity == name && !key.kernel == in_place) return *candidate;
  throw std::runtime_error("no table " + name);
}

TEST_F(QuantitiesTest, WeightsOfTheOwnKernelAndOfComparedOnes) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  request.quantities = {WeightsKey{.layer = 2},
                        WeightsKey{.layer = 1, .kernel = KernelSpec{"softmax", {}}, .rows = {0, 5}},
                        WeightsKey{.layer = 1, .kernel = KernelSpec{"hedgehog", {}}, .rows = {0, 5}}};
  const auto result = run(request);
  const auto read = result->quantities.all<WeightsKey>(); // in the order asked
  ASSERT_EQ(read.size(), 3U);
  const WeightsResult& own = *read[0].result;
  EXPECT_EQ(own.kernel.name, "hydra-cosine");
  EXPECT_TRUE(own.derived_signed);
  EXPECT_TRUE(own.untrained);
  EXPECT_THAT(own.weights.shape, testing::ElementsAre(FakeModel::kHeads, kTokens, kTokens));
  for (std::size_t i = 1; i < 3; ++i) {
    const WeightsResult& weights = *read[i].result;
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
  EXPECT_FALSE(read[1].result->untrained);
  EXPECT_TRUE(read[2].result->untrained);
}

// A key that is made before the number of tokens is known names no row that is not there.
TEST_F(QuantitiesTest, WeightsOfEvenlySpacedRows) {
  RunRequest request = fake_request(kText);
  const WeightsKey some{.layer = 1, .most_rows = 3}, all{.layer = 2, .most_rows = 100 * kTokens};
  request.quantities = {some, all};
  const auto result = run(request);
  const WeightsResult& spaced = test::read(*result, some);
  EXPECT_THAT(spaced.rows, testing::ElementsAre(0, 2, 5));
  EXPECT_THAT(spaced.weights.shape, testing::ElementsAre(FakeModel::kHeads, 3, kTokens));
  EXPECT_LT(spaced.check, 1e-5);
  EXPECT_THAT(test::read(*result, all).weights.shape,
              testing::ElementsAre(FakeModel::kHeads, kTokens, kTokens));
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

TEST_F(QuantitiesTest, VectorsMultiplyToTheWeights) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec softmax, hedgehog{"hedgehog", {}};
  for (const KernelSpec& kernel : {softmax, hedgehog}) {
    request.quantities.add(WeightsKey{.layer = 1, .kernel = kernel, .rows = {3}});
    request.quantities.add(VectorsKey{.layer = 1, .kernel = kernel, .head = 1, .query = 3});
  }
  const auto result = run(request);
  const auto weights = result->quantities.all<WeightsKey>();
  const auto vectors = result->quantities.all<VectorsKey>();
  ASSERT_EQ(weights.size(), 2U);
  ASSERT_EQ(vectors.size(), 2U);
  const VectorsResult& plain = *vectors[0].result;
  const VectorsResult& featured = *vectors[1].result;
  EXPECT_TRUE(plain.query_feature.empty());
  ASSERT_THAT(plain.q.shape, testing::ElementsAre(FakeModel::kHeads, kTokens, FakeModel::kWidth / 2));
  const std::size_t width = FakeModel::kWidth / 2;
  const auto query = plain.q.slice(1).subspan(3 * width, width);
  std::vector<double> scores, similarities;
  double scores_sum = 0, similarities_sum = 0;
  for (std::size_t key = 0; key < kTokens; ++key) {
    scores.push_back(std::exp(dot(query, plain.k.slice(1).subspan(key * width, width)) / std::sqrt(width)));
    scores_sum += scores.back();
    similarities.push_back(
        dot(featured.query_feature.values, featured.key_features.slice(static_cast<std::int64_t>(key))));
    similarities_sum += similarities.back();
  }
  EXPECT_TRUE(featured.rescaled);
  EXPECT_TRUE(featured.untrained);
  for (std::size_t key = 0; key < kTokens; ++key) {
    EXPECT_NEAR(scores[key] / scores_sum, static_cast<double>(weights[0].result->weights.slice(1)[key]),
                1e-5);
    EXPECT_NEAR(similarities[key] / similarities_sum,
                static_cast<double>(weights[1].result->weights.slice(1)[key]), 1e-5);
  }
  EXPECT_TRUE(result->quantities.all<FocusKey>().empty());
}

TEST_F(QuantitiesTest, AHydraLayersVectorsHaveTheGradientOfItsFocusMap) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  const VectorsKey key{.layer = 2, .head = 0, .query = 0, .gradient = true};
  request.quantities = {FocusKey{2}, key};
  const auto result = run(request);
  ASSERT_EQ(result->quantities.all<VectorsKey>().size(), 1U);
  const VectorsResult& vectors = test::read(*result, key);
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
  EXPECT_NEAR(total, test::read(*result, FocusKey{2}).total, 1e-5);
  request.quantities = {key};
  const auto alone = run(request);
  EXPECT_TRUE(alone->quantities.all<FocusKey>().empty());
  EXPECT_EQ(test::read(*alone, key).gradient.values, vectors.gradient.values);
}

TEST_F(QuantitiesTest, MonotonicityOfOwnAndOfTeacherForcedKernels) {
  RunRequest request = fake_request(kText, "2=elu");
  request.quantities = {HeadTableKey{"monotonicity"}, HeadTableKey{"monotonicity", KernelSpec{"elu", {}}}};
  const auto result = run(request);
  ASSERT_EQ(result->quantities.all<HeadTableKey>().size(), 2U);
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

TEST_F(QuantitiesTest, TilesAreTheLargestWeightsUnderEachCell) {
  RunRequest request = fake_request(kText, {});
  const KernelSpec hydra{"hydra-cosine", {}};
  const WeightsKey all{.layer = 1, .kernel = hydra};
  request.quantities = {
      all,
      TileKey{.layer = 1, .kernel = hydra, .heads = {1}, .fusion = std::nullopt, .rows = 100, .columns = 100},
      TileKey{.layer = 1,
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
  const auto tiles = result->quantities.all<TileKey>();
  ASSERT_EQ(tiles.size(), 2U);
  const Array& weights = test::read(*result, all).weights;
  const TileResult& whole = *tiles[0].result;
  EXPECT_THAT(whole.values.shape, testing::ElementsAre(1, kTokens, kTokens));
  EXPECT_THAT(whole.values.values, testing::ElementsAreArray(weights.slice(1)));
  EXPECT_TRUE(whole.derived_signed);
  const Array& pooled = tiles[1].result->values;
  ASSERT_THAT(pooled.shape, testing::ElementsAre(1, 2, 4));
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      float largest = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t cell = (2 + row * 2 + i / 2) * kTokens + column * 2 + i % 2;
        const float mean = (weights.slice(0)[cell] + weights.slice(1)[cell]) / 2;
        if (std::abs(mean) > std::abs(largest)) largest = mean;
      }
      EXPECT_NEAR(pooled.values[row * 4 + column], largest, 1e-6F);
    }
  }
  request.quantities = {TileKey{
      .layer = 1, .kernel = hydra, .heads = {}, .fusion = std::nullopt, .first_row = 6, .row_count = 9}};
  EXPECT_THROW(run(request), UsageError);
}

TEST(TilesOfGroupedHeads, AreTheWeightsOfEachHead) {
  RunRequest request;
  request.model_folder = test::source_folder() / "tests/golden/decoders/written";
  request.input = TextInput{kText, std::nullopt};
  for (const char* kernel : {"softmax", "elu", "hedgehog", "hedgehog:shared=1", "hydra-cosine"}) {
    SCOPED_TRACE(kernel);
    const KernelSpec spec = parse_kernel_spec(kernel);
    const WeightsKey all{.layer = 1, .kernel = spec};
    TileKey tile{.layer = 1, .kernel = spec, .heads = {}, .fusion = {}, .rows = 100, .columns = 100};
    request.quantities = {all};
    for (const int head : {1, 3}) {
      tile.heads = {head};
      request.quantities.add(tile);
    }
    const auto result = Runner().run(request);
    const Array& weights = test::read(*result, all).weights;
    const auto tiles = result->quantities.all<TileKey>();
    ASSERT_EQ(tiles.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_THAT(tiles[i].result->values.values,
                  testing::Pointwise(testing::FloatNear(1e-6F), weights.slice(i == 0 ? 1 : 3)));
  }
}

TEST_F(QuantitiesTest, TeacherForcedWeightsAreThoseOfTheSoftmaxRun) {
  RunRequest softmax = fake_request(kText);
  const WeightsKey own{.layer = 3, .kernel = KernelSpec{"softmax", {}}};
  softmax.quantities = {own};
  const auto reference = run(softmax);

  RunRequest request = fake_request(kText, "0,1=hydra-cosine");
  request.quantities = {WeightsKey{.layer = 3, .kernel = KernelSpec{"softmax", {}}, .teacher_forced = true},
                        own};
  const auto result = run(request);
  const auto weights = result->quantities.all<WeightsKey>();
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_TRUE(weights[0].result->teacher_forced);
  EXPECT_FALSE(weights[1].result->teacher_forced);
  EXPECT_EQ(weights[0].result->weights.values, test::read(*reference, own).weights.values);
  EXPECT_NE(weights[1].result->weights.values, test::read(*reference, own).weights.values);
}

TEST_F(QuantitiesTest, TablesInPlace) {
  RunRequest request = fake_request(kText, "1=sdpa;2=hydra-cosine;3=elu");
  request.quantities = {HeadTableKey{"entropy"}, HeadTableKey{"kl"}, HeadTableKey{"change"}};
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

TEST_F(QuantitiesTest, KnownTablesRunNoBlockAgainAndStayTheSame) {
  RunRequest request = fake_request(kText, "3=elu");
  request.quantities = {HeadTableKey{"entropy"}, HeadTableKey{"kl"}};
  const auto first = run(request);
  const auto second = run(request);
  EXPECT_THAT(model_->runs(), testing::Each(1));
  EXPECT_EQ(table(*first, "kl", true).values.values, table(*second, "kl", true).values.values);
  run(fake_request(kText, "3=hydra-cosine"));
  EXPECT_THAT(model_->runs(), testing::ElementsAre(1, 1, 1, 2));
}

TEST_F(QuantitiesTest, TeacherForcedTables) {
  RunRequest request = fake_request(kText, "0-3=hydra-cosine");
  for (const KernelSpec& kernel : {KernelSpec{"softmax", {}}, KernelSpec{"hedgehog", {}}})
    for (const char* quantity : {"entropy", "kl", "change"})
      request.quantities.add(HeadTableKey{quantity, kernel});
  const auto result = run(request);
  const auto tables = result->quantities.all<HeadTableKey>();
  ASSERT_EQ(tables.size(), 6U);
  const HeadTable& softmax = *tables[1].result;
  EXPECT_EQ(softmax.key.quantity, "kl");
  EXPECT_EQ(softmax.kernel.name, "softmax");
  for (const float value : softmax.values.values) EXPECT_EQ(value, 0.0F);
  const HeadTable& hedgehog = *tables[4].result;
  EXPECT_EQ(hedgehog.key.quantity, "kl");
  EXPECT_EQ(hedgehog.kernel.name, "hedgehog");
  EXPECT_TRUE(hedgehog.untrained);
  for (const float value : hedgehog.values.values) EXPECT_GT(value, 0.0F);
  EXPECT_THAT(tables[5].result->values.shape, testing::ElementsAre(4, FakeModel::kHeads, 3));
  EXPECT_EQ(result->predictions.size(), 3U);
}

TEST_F(QuantitiesTest, AttentionRowsAreRowsOfTheWeights) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  const std::vector<AttentionRowKey> asked = {{.layer = 1, .query = 3}, {.layer = 2}, {.layer = 1}};
  request.quantities = {WeightsKey{.layer = 1}, WeightsKey{.layer = 2}};
  for (const AttentionRowKey& key : asked) request.quantities.add(key);
  const auto result = run(request);
  const auto rows = result->quantities.all<AttentionRowKey>();
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const AttentionRowResult& row = *rows[i].result;
    EXPECT_EQ(rows[i].key, asked[i]);
    EXPECT_EQ(row.key, asked[i]);
    const Array& whole = test::read(*result, WeightsKey{.layer = i == 1 ? 2 : 1}).weights;
    EXPECT_EQ(row.derived_signed, i == 1);
    ASSERT_THAT(row.weights.shape, testing::ElementsAre(whole.extent(0), kTokens));
    for (std::int64_t head = 0; head < whole.extent(0); ++head) {
      for (std::int64_t key = 0; key < kTokens; ++key) {
        const auto at = [&](std::int64_t query) {
          return static_cast<double>(whole.slice(head)[static_cast<std::size_t>(query * kTokens + key)]);
        };
        double expected = 0;
        for (std::int64_t query = 0; query < kTokens; ++query) expected += at(query) / kTokens;
        if (row.key.query) expected = at(*row.key.query);
        EXPECT_NEAR(static_cast<double>(row.weights.slice(head)[static_cast<std::size_t>(key)]), expected,
                    1e-6);
      }
    }
  }
  request.quantities = {AttentionRowKey{.layer = 1, .query = kTokens}};
  EXPECT_THROW(run(request), UsageError);
}

TEST_F(QuantitiesTest, RolloutRowsSumToOneAndHiddenStatesAreAllThere) {
  RunRequest request = fake_request(kText, "2=hydra-cosine");
  RolloutKey key{.discard = 0.2};
  request.quantities = {key, HiddenStatesKey{}};
  const auto result = run(request);
  EXPECT_TRUE(test::read(*result, key).magnitudes);
  const Array& rollout = test::read(*result, key).weights;
  EXPECT_THAT(rollout.shape, testing::ElementsAre(1, kTokens, kTokens));
  for (std::int64_t row = 0; row < kTokens; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < kTokens; ++column)
      sum += static_cast<double>(rollout.values[static_cast<std::size_t>(row * kTokens + column)]);
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
  const std::vector<Array>& states = test::read(*result, HiddenStatesKey{});
  ASSERT_EQ(states.size(), 5U);
  for (const Array& hidden : states)
    EXPECT_THAT(hidden.shape, testing::ElementsAre(1, kTokens, FakeModel::kWidth));
  key.heads = {1};
  request.quantities = {key, HiddenStatesKey{}};
  EXPECT_NE(test::read(*run(request), key).weights.values, rollout.values);
  key.discard = 1.5;
  request.quantities = {key};
  EXPECT_THROW(run(request), UsageError);
}

// A kernel with one head has no head 1: its one head enters, and the result tells how many each kernel has.
TEST_F(QuantitiesTest, RolloutCountsTheHeadsOfEachKernel) {
  RunRequest request = fake_request(kText, "2=linear-cosine:heads=1");
  const RolloutKey key{.heads = {1}};
  request.quantities = {key};
  EXPECT_THAT(test::read(*run(request), key).kernel_heads, testing::ElementsAre(2, 2, 1, 2));
}

} // namespace
} // namespace hydrascope
