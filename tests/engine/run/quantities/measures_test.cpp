#include "engine/run/quantities/measures.h"

#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

at::Tensor distributions(std::vector<std::int64_t> shape) { return at::softmax(at::randn(shape), -1); }

TEST(Entropy, OfUniformRowsIsTheLogarithmOfTheirLength) {
  const at::Tensor values = entropy(at::full({1, 3, 5, 50}, 1.0 / 50));
  ASSERT_EQ(values.sizes(), at::IntArrayRef({1, 3}));
  for (int head = 0; head < 3; ++head) EXPECT_NEAR(values[0][head].item<double>(), std::log(50.0), 1e-6);
}

TEST(Entropy, OfOneHotRowsIsZero) {
  at::Tensor weights = at::full({1, 1, 2, 4}, 0.0);
  weights.select(3, 1).fill_(1.0);
  EXPECT_DOUBLE_EQ(entropy(weights).item<double>(), 0.0);
}

TEST(Entropy, LeavesMaskedRowsOutWhateverTheyHold) {
  at::Tensor weights = at::full({1, 1, 3, 8}, 1.0 / 8);
  weights.select(2, 2).fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor real = at::tensor({1, 1, 0}).to(at::kBool).unsqueeze(0);
  EXPECT_NEAR(entropy(weights, real).item<double>(), std::log(8.0), 1e-6);
}

TEST(Divergence, OfADistributionFromItselfIsZero) {
  const at::Tensor weights = distributions({1, 2, 6, 9});
  const Divergence divergence = kl_divergence(weights, weights);
  EXPECT_NEAR(divergence.kl.abs().max().item<double>(), 0.0, 1e-9);
  EXPECT_EQ(divergence.clamped.item<double>(), 0.0);
  EXPECT_EQ(divergence.entries.item<double>(), 2 * 6 * 9);
}

TEST(Divergence, FromTheUniformIsTheMissingEntropy) {
  const at::Tensor weights = distributions({1, 2, 6, 9});
  const Divergence divergence = kl_divergence(weights, at::full({1, 2, 6, 9}, 1.0 / 9));
  EXPECT_NEAR((divergence.kl - (std::log(9.0) - entropy(weights))).abs().max().item<double>(), 0.0, 1e-6);
}

TEST(Divergence, ClampsZerosAndCountsThem) {
  const at::Tensor softmax = at::full({1, 1, 1, 2}, 0.5);
  const at::Tensor kernel = at::tensor({1.0F, 0.0F}).reshape({1, 1, 1, 2});
  const Divergence divergence = kl_divergence(softmax, kernel);
  EXPECT_NEAR(divergence.kl.item<double>(), std::log(0.5) - 0.5 * std::log(1e-12), 1e-4);
  EXPECT_EQ(divergence.clamped.item<double>(), 1.0);
  EXPECT_EQ(divergence.entries.item<double>(), 2.0);
}

TEST(Divergence, CountsRealRowsAndVisibleKeysOnly) {
  at::Tensor softmax = at::full({1, 1, 2, 3}, 0.5);
  softmax.select(3, 2).fill_(0.0);
  const at::Tensor rows = at::tensor({1, 0}).to(at::kBool).unsqueeze(0);
  const at::Tensor visible = at::tensor({1, 1, 0, 0, 0, 0}).to(at::kBool).reshape({1, 1, 2, 3});
  const Divergence divergence = kl_divergence(softmax, softmax, rows, visible);
  EXPECT_EQ(divergence.clamped.item<double>(), 0.0);
  EXPECT_EQ(divergence.entries.item<double>(), 2.0);
  EXPECT_NEAR(divergence.kl.item<double>(), 0.0, 1e-9);
}

TEST(OutputChange, OfADoubledOutput) {
  const at::Tensor out = at::randn({1, 2, 5, 3});
  const at::Tensor change = output_change(out, out * 2.0);
  ASSERT_EQ(change.sizes(), at::IntArrayRef({1, 2, 3}));
  for (int head = 0; head < 2; ++head) {
    EXPECT_NEAR(change[0][head][0].item<double>(), 2.0, 1e-6);
    EXPECT_NEAR(change[0][head][1].item<double>(), 1.0, 1e-6);
    EXPECT_NEAR(change[0][head][2].item<double>(), 1.0, 1e-6);
  }
}

TEST(Rollout, RowsSumToOneForEveryFusionAndDiscard) {
  const std::vector<at::Tensor> layers = {distributions({1, 3, 12, 12}), at::randn({1, 3, 12, 12}),
                                          distributions({1, 3, 12, 12})};
  for (const HeadFusion fusion : {HeadFusion::mean, HeadFusion::min, HeadFusion::max})
    for (const double discard : {0.0, 0.5, 0.95}) {
      const at::Tensor result = rollout(layers, fusion, discard);
      ASSERT_EQ(result.sizes(), at::IntArrayRef({1, 12, 12}));
      EXPECT_LT((result.sum(-1) - 1.0).abs().max().item<double>(), 1e-5);
      EXPECT_GE(result.min().item<double>(), 0.0);
    }
}

TEST(Rollout, OfOneLayerIsHalfTheWeightsAndHalfTheIdentity) {
  const at::Tensor weights = distributions({1, 1, 4, 4});
  const at::Tensor result = rollout({weights});
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column)
      EXPECT_NEAR(result[0][row][column].item<double>(),
                  0.5 * weights[0][0][row][column].item<double>() + (row == column ? 0.5 : 0.0), 1e-6);
}

TEST(Rollout, MultipliesLaterLayersFromTheLeft) {
  const at::Tensor first = distributions({1, 1, 5, 5});
  const at::Tensor second = distributions({1, 1, 5, 5});
  const at::Tensor expected = rollout({second}).matmul(rollout({first}));
  EXPECT_LT((rollout({first, second}) - expected).abs().max().item<double>(), 1e-6);
}

TEST(Rollout, DiscardSparesTheClassTokenAndTheDiagonal) {
  const at::Tensor weights = at::tensor({0.01F, 0.02F, 0.90F, 0.07F, //
                                         0.01F, 0.02F, 0.90F, 0.07F, //
                                         0.80F, 0.10F, 0.04F, 0.06F, //
                                         0.10F, 0.20F, 0.65F, 0.05F})
                                 .reshape({1, 1, 4, 4});
  const at::Tensor result = rollout_factor(weights, 0, HeadFusion::mean, 0.5)[0];
  EXPECT_GT(result[1][0].item<double>(), 0.0); // the class token's column
  EXPECT_GT(result[3][3].item<double>(), 0.5); // the diagonal keeps its own weight as well
  EXPECT_EQ(result[0][1].item<double>(), 0.0); // the lowest that is neither
}

TEST(Rollout, TilesAgreeWithTheWhole) {
  const at::Tensor weights = distributions({1, 2, 7, 7});
  const at::Tensor whole = rollout_factor(weights, 0, HeadFusion::max, 0.3);
  const at::Tensor tile = rollout_factor(weights.slice(2, 3, 6), 3, HeadFusion::max, 0.3);
  EXPECT_LT((whole.slice(1, 3, 6) - tile).abs().max().item<double>(), 1e-7);
}

TEST(Rollout, RefusesADiscardOfEverything) {
  EXPECT_THROW(rollout({distributions({1, 1, 3, 3})}, HeadFusion::mean, 1.0), UsageError);
}

TEST(HeadDistance, JensenShannonByItsDefinition) {
  const at::Tensor p = at::tensor({0.5, 0.25, 0.25, 0.0}).view({1, 1, 1, 4});
  const at::Tensor q = at::tensor({0.0, 0.5, 0.25, 0.25}).view({1, 1, 1, 4});
  // m = (¼, ⅜, ¼, ⅛)
  const double expected = 0.5 * (0.5 * std::log(2.0) + 0.25 * std::log(0.25 / 0.375)) +
                          0.5 * (0.5 * std::log(0.5 / 0.375) + 0.25 * std::log(2.0));
  EXPECT_NEAR(jensen_shannon(p, q).item<double>(), expected, 1e-7);
  EXPECT_NEAR(jensen_shannon(q, p).item<double>(), expected, 1e-7);
}

TEST(HeadDistance, JensenShannonIsZeroForEqualAndLogTwoForDisjointRows) {
  const at::Tensor weights = distributions({2, 3, 5, 7});
  EXPECT_EQ(jensen_shannon(weights, weights).abs().max().item<double>(), 0.0);
  at::Tensor one = at::zeros({1, 1, 1, 4}), other = at::zeros({1, 1, 1, 4});
  one.select(3, 0).fill_(1.0);
  other.select(3, 2).fill_(1.0);
  EXPECT_NEAR(jensen_shannon(one, other).item<double>(), std::log(2.0), 1e-7);
}

TEST(HeadDistance, TilesAddUpToTheMeanOverRealRows) {
  const at::Tensor weights = distributions({1, 4, 6, 6});
  const at::Tensor chosen = distributions({1, 1, 6, 6});
  const at::Tensor real = at::tensor({1, 1, 0, 1, 1, 0}).to(at::kBool).unsqueeze(0);
  HeadDistances tiles(HeadMetric::jensen_shannon);
  for (const auto& [first, last] : {std::pair{0, 2}, {2, 5}, {5, 6}})
    tiles.add(weights.slice(2, first, last), chosen.slice(2, first, last), real.slice(1, first, last));
  const at::Tensor rows = jensen_shannon(weights, chosen);
  for (int head = 0; head < 4; ++head) {
    double sum = 0;
    for (const int row : {0, 1, 3, 4}) sum += rows[0][head][row].item<double>();
    EXPECT_NEAR(tiles.value()[0][head].item<double>(), sum / 4, 1e-9);
  }
}

TEST(HeadDistance, CosineOfSignedWeights) {
  const at::Tensor chosen = at::rand({1, 1, 3, 5}) - 0.5;
  HeadDistances distances(HeadMetric::cosine);
  const at::Tensor all = at::cat({chosen * 3.0, chosen * -1.0, at::zeros({1, 1, 3, 5})}, 1);
  distances.add(all.slice(2, 0, 1), chosen.slice(2, 0, 1));
  distances.add(all.slice(2, 1), chosen.slice(2, 1));
  EXPECT_NEAR(distances.value()[0][0].item<double>(), 0.0, 1e-6);
  EXPECT_NEAR(distances.value()[0][1].item<double>(), 2.0, 1e-6);
  EXPECT_TRUE(std::isnan(distances.value()[0][2].item<double>()));
}

constexpr int kHeads = 2, kTokens = 5, kWidth = 3;

// The length of what one token's value becomes behind W_o, by itself.
double length(const at::Tensor& v, const at::Tensor& output_weight, std::int64_t first) {
  return at::linear(v, output_weight.slice(1, first, first + v.size(0))).norm().item<double>();
}

TEST(ValueNorms, AreTheLengthsOfTheTransformedValues) {
  AttentionInput input;
  input.q = input.k = at::rand({1, kHeads, kTokens, kWidth});
  input.v = at::randn({1, kHeads, kTokens, kWidth});
  const at::Tensor output_weight = at::randn({kHeads * kWidth, kHeads * kWidth});
  const at::Tensor norms = value_norms(input, output_weight, kHeads);
  ASSERT_EQ(norms.sizes(), at::IntArrayRef({1, kHeads, kTokens}));
  for (int head = 0; head < kHeads; ++head)
    for (int token = 0; token < kTokens; ++token)
      EXPECT_NEAR(norms[0][head][token].item<double>(),
                  length(input.v[0][head][token], output_weight, head * kWidth), 1e-4);

  // One head over all features: a token's whole value through the whole of W_o.
  const at::Tensor whole = value_norms(input, output_weight, 1);
  ASSERT_EQ(whole.sizes(), at::IntArrayRef({1, 1, kTokens}));
  for (int token = 0; token < kTokens; ++token)
    EXPECT_NEAR(whole[0][0][token].item<double>(),
                length(input.v.select(0, 0).select(1, token).flatten(), output_weight, 0), 1e-4);
}

TEST(ValueNorms, AreZeroForMaskedTokensWhateverTheyHold) {
  AttentionInput input;
  input.q = input.k = input.v = at::rand({1, kHeads, kTokens, kWidth});
  input.v.select(2, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  input.mask = at::tensor({1, 1, 1, 1, 0}).to(at::kBool).unsqueeze(0);
  const at::Tensor norms = value_norms(input, at::randn({kHeads * kWidth, kHeads * kWidth}), kHeads);
  EXPECT_EQ(norms.select(2, 4).abs().max().item<double>(), 0.0);
  EXPECT_GT(norms.slice(2, 0, 4).min().item<double>(), 0.0);
}

} // namespace
} // namespace hydrascope
