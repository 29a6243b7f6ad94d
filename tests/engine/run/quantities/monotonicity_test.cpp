#include "engine/run/quantities/measures.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/run/quantities/spearman_definition.h"

namespace hydrascope {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The visible values of one row.
std::vector<double> row_of(const at::Tensor& values, const at::Tensor& visible, std::int64_t batch,
                           std::int64_t head, std::int64_t row) {
  std::vector<double> result;
  for (std::int64_t key = 0; key < values.size(3); ++key)
    if (!visible.defined() || visible[batch][0][row][key].item<bool>())
      result.push_back(values[batch][head][row][key].item<double>());
  return result;
}

// Mean over the rows of at least three visible keys.
double monotonicity_reference(const at::Tensor& weights, const at::Tensor& scores, const at::Tensor& visible,
                              std::int64_t batch, std::int64_t head) {
  double sum = 0, count = 0;
  for (std::int64_t row = 0; row < weights.size(2); ++row) {
    const std::vector<double> seen = row_of(weights, visible, batch, head, row);
    if (seen.size() < 3) continue;
    sum += test::spearman_by_definition(seen, row_of(scores, visible, batch, head, row));
    ++count;
  }
  return count > 0 ? sum / count : nan;
}

void expect_reference(const at::Tensor& weights, const at::Tensor& scores, const at::Tensor& visible) {
  const at::Tensor values = monotonicity(weights, scores, visible);
  ASSERT_EQ(values.sizes(), at::IntArrayRef({weights.size(0), weights.size(1)}));
  for (std::int64_t batch = 0; batch < weights.size(0); ++batch)
    for (std::int64_t head = 0; head < weights.size(1); ++head)
      EXPECT_NEAR(values[batch][head].item<double>(),
                  monotonicity_reference(weights, scores, visible, batch, head), 1e-9);
}

AttentionInput random_input(std::int64_t batch, std::int64_t heads, std::int64_t tokens, std::int64_t width) {
  AttentionInput input;
  input.q = at::randn({batch, heads, tokens, width}) * 2.0;
  input.k = at::randn({batch, heads, tokens, width}) * 2.0;
  input.v = at::randn({batch, heads, tokens, width});
  return input;
}

// Sequence b has b + 1 masked tokens at its end, filled with what must not be looked at.
void mask_tails(AttentionInput& input) {
  input.mask = at::ones({input.q.size(0), input.q.size(2)}, at::kBool);
  for (std::int64_t b = 0; b < input.q.size(0); ++b) {
    const std::int64_t first = input.q.size(2) - b - 1;
    input.mask[b].slice(0, first).fill_(false);
    for (at::Tensor* x : {&input.q, &input.k, &input.v}) x->select(0, b).slice(1, first).fill_(nan);
  }
}

TEST(Monotonicity, IsSpearmansRhoWithinRows) {
  expect_reference(at::rand({2, 3, 7, 11}), at::randn({2, 3, 7, 11}), {});
  expect_reference(at::rand({1, 2, 5, 9}, at::kDouble), at::randn({1, 2, 5, 9}, at::kDouble), {});
}

TEST(Monotonicity, TiesShareTheirMeanRank) {
  expect_reference(at::randint(0, 4, {2, 2, 9, 12}).to(at::kFloat),
                   at::randint(-3, 3, {2, 2, 9, 12}).to(at::kFloat), {});
}

TEST(Monotonicity, OfLongRowsAndNumbersOfEverySize) {
  const at::Tensor weights = at::randn({1, 1, 2, 700}) * at::exp(20.0 * at::randn({1, 1, 2, 700}));
  expect_reference(weights, at::randn({1, 1, 2, 700}), {});
  expect_reference(at::randint(-9, 9, {1, 1, 2, 700}).to(at::kFloat), at::randn({1, 1, 2, 700}), {});
  at::Tensor zeros = at::randn({1, 1, 1, 400});
  zeros.slice(3, 0, 300, 2).fill_(0.0);
  zeros.slice(3, 1, 300, 2).fill_(-0.0);
  expect_reference(zeros, at::randn({1, 1, 1, 400}), {});
}

TEST(Monotonicity, NegativeAndPositiveZeroAreEqual) {
  const at::Tensor weights = at::tensor({0.0F, -0.0F, 1.0F}).reshape({1, 1, 1, 3});
  const at::Tensor scores = at::tensor({2.0F, 1.0F, 3.0F}).reshape({1, 1, 1, 3});
  EXPECT_NEAR(monotonicity(weights, scores).item<double>(), std::sqrt(3.0) / 2, 1e-12);
}

TEST(Monotonicity, OfAConstantRowIsZero) {
  EXPECT_EQ(monotonicity(at::full({1, 1, 1, 6}, 0.25), at::randn({1, 1, 1, 6})).item<double>(), 0.0);
  EXPECT_EQ(monotonicity(at::randn({1, 1, 1, 6}), at::full({1, 1, 1, 6}, 0.25)).item<double>(), 0.0);
}

TEST(Monotonicity, OfSoftmaxItselfIsOne) {
  const auto softmax = make_kernel({});
  for (const std::int64_t tokens : {3, 17, 197}) {
    const AttentionInput input = random_input(1, 2, tokens, 8);
    const at::Tensor rho = monotonicity(softmax->weights(input, {}), attention_scores(input));
    // Weights that underflow tie where their scores differ.
    EXPECT_NEAR(rho.min().item<double>(), 1.0, 1e-3);
    const at::Tensor scores = at::randn({1, 2, 5, tokens}, at::kDouble);
    EXPECT_NEAR(monotonicity(at::softmax(scores, -1), scores).min().item<double>(), 1.0, 1e-12);
  }
}

TEST(Monotonicity, SeesVisibleKeysOnly) {
  for (const bool causal : {false, true})
    for (const bool masked : {false, true}) {
      AttentionInput input = random_input(3, 2, 8, 4);
      input.causal = causal;
      if (masked) mask_tails(input);
      const at::Tensor visible = visible_keys(input);
      ASSERT_EQ(visible.defined(), causal || masked);
      for (std::int64_t b = 0; visible.defined() && b < 3; ++b)
        for (std::int64_t row = 0; row < 8; ++row)
          for (std::int64_t key = 0; key < 8; ++key) {
            const std::int64_t real = masked ? 7 - b : 8;
            const bool expected = row < real && key < real && (!causal || key <= row);
            EXPECT_EQ(visible[b][0][row][key].item<bool>(), expected) << b << ' ' << row << ' ' << key;
          }
      const auto kernel = make_kernel(parse_kernel_spec("elu"));
      expect_reference(kernel->weights(input, {}), attention_scores(input), visible);
    }
}

TEST(Monotonicity, LeavesOutRowsOfFewerThanThreeKeys) {
  EXPECT_TRUE(std::isnan(monotonicity(at::rand({1, 1, 4, 2}), at::randn({1, 1, 4, 2})).item<double>()));
  AttentionInput input = random_input(1, 1, 3, 4);
  input.causal = true; // of three rows only the last sees three keys
  const at::Tensor weights = at::tensor({9.0F, 0.0F, 0.0F, 5.0F, 1.0F, 0.0F, 1.0F, 2.0F, 3.0F});
  const at::Tensor scores = at::tensor({0.0F, 9.0F, 9.0F, 1.0F, 5.0F, 9.0F, 3.0F, 2.0F, 1.0F});
  EXPECT_NEAR(monotonicity(weights.reshape({1, 1, 3, 3}), scores.reshape({1, 1, 3, 3}), visible_keys(input))
                  .item<double>(),
              -1.0, 1e-12);
}

TEST(Monotonicity, ShowsWeightsThatAreNotNumbers) {
  at::Tensor weights = at::rand({1, 1, 3, 5});
  weights[0][0][1][2] = nan;
  EXPECT_TRUE(std::isnan(monotonicity(weights, at::randn({1, 1, 3, 5})).item<double>()));
}

TEST(Scores, OfSomeRowsAreRowsOfAll) {
  AttentionInput input = random_input(2, 3, 9, 4);
  mask_tails(input);
  input.causal = true;
  const at::Tensor rows = at::tensor({5, 0, 8}, at::kLong);
  EXPECT_TRUE(attention_scores(input, rows).allclose(attention_scores(input).index_select(2, rows)));
  EXPECT_TRUE(visible_keys(input, rows).equal(visible_keys(input).index_select(2, rows)));
}

TEST(Scores, AreProductsOverTheRootOfTheHeadWidth) {
  const AttentionInput input = random_input(1, 4, 5, 3);
  const double product = (input.q[0][2][1] * input.k[0][2][4]).sum().item<double>();
  EXPECT_NEAR(attention_scores(input)[0][2][1][4].item<double>(), product / std::sqrt(3.0), 1e-5);
  // Two heads of six features out of four of three.
  const at::Tensor wide = attention_scores(input, {}, 2);
  ASSERT_EQ(wide.sizes(), at::IntArrayRef({1, 2, 5, 5}));
  const double both = product + (input.q[0][3][1] * input.k[0][3][4]).sum().item<double>();
  EXPECT_NEAR(wide[0][1][1][4].item<double>(), both / std::sqrt(6.0), 1e-5);
}

TEST(Scores, RangeAndShareBelowMinusOne) {
  const at::Tensor scores =
      at::tensor({-3.0F, -1.0F, 0.0F, 2.0F, -1.5F, 7.0F, -1.25F, 1.0F}).reshape({1, 2, 2, 2});
  const ScoreRange range = score_range(scores);
  EXPECT_EQ(range.smallest[0][0].item<double>(), -3.0);
  EXPECT_EQ(range.largest[0][1].item<double>(), 7.0);
  EXPECT_EQ(range.share_below[0][0].item<double>(), 0.25);
  EXPECT_EQ(range.share_below[0][1].item<double>(), 0.5);
}

TEST(Scores, RangeOfALayerCountsVisibleKeysOnly) {
  AttentionInput input = random_input(3, 2, 8, 4);
  mask_tails(input);
  const ScoreRange range = score_range(input);
  for (std::int64_t b = 0; b < 3; ++b) {
    AttentionInput alone;
    alone.q = input.q.slice(0, b, b + 1).slice(2, 0, 7 - b);
    alone.k = input.k.slice(0, b, b + 1).slice(2, 0, 7 - b);
    alone.v = input.v.slice(0, b, b + 1).slice(2, 0, 7 - b);
    const ScoreRange expected = score_range(attention_scores(alone));
    EXPECT_TRUE(range.smallest[b].allclose(expected.smallest[0]));
    EXPECT_TRUE(range.largest[b].allclose(expected.largest[0]));
    EXPECT_TRUE(range.share_below[b].allclose(expected.share_below[0]));
  }
}

} // namespace
} // namespace hydrascope
