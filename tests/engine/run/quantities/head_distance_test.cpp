#include "engine/run/quantities/head_distance.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

at::Tensor distributions(std::vector<std::int64_t> shape) { return at::softmax(at::randn(shape), -1); }

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

} // namespace
} // namespace hydrascope
