#include "engine/measure/correlation.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<double>;

TEST(Correlation, PearsonByHand) {
  // Deviations −1, 0, 1 and −4/3, −1/3, 5/3: 3 / √(2 · 14/3).
  EXPECT_NEAR(pearson_correlation(Numbers{1, 2, 3}, Numbers{1, 2, 4}), 3 / std::sqrt(2 * 14.0 / 3), 1e-12);
  EXPECT_NEAR(pearson_correlation(Numbers{1, 2, 4}, Numbers{-3, -5, -9}), -1, 1e-12);
  // A unit does not matter.
  EXPECT_NEAR(pearson_correlation(Numbers{1, 2, 3}, Numbers{2001, 2002, 2004}), 3 / std::sqrt(2 * 14.0 / 3),
              1e-9);
}

TEST(Correlation, TiesHaveTheMeanOfTheirRanks) {
  EXPECT_THAT(ranks(Numbers{3, 1, 3, 0, 3}), ElementsAre(4, 2, 4, 1, 4));
  EXPECT_THAT(ranks(Numbers{5, 5}), ElementsAre(1.5, 1.5));
  EXPECT_THAT(ranks(Numbers{}), IsEmpty());
}

TEST(Correlation, SpearmanIsOfRanks) {
  EXPECT_NEAR(spearman_correlation(Numbers{1, 2, 3, 4}, Numbers{1, 8, 27, 1000}), 1, 1e-12);
  // 1 − 6 Σd² / (n (n² − 1)) without ties: d = 0, 1, −1, 0.
  EXPECT_NEAR(spearman_correlation(Numbers{1, 2, 3, 4}, Numbers{10, 30, 20, 40}), 1 - 6.0 * 2 / (4 * 15),
              1e-12);
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / √(4.5 · 5).
  EXPECT_NEAR(spearman_correlation(Numbers{1, 2, 2, 3}, Numbers{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5),
              1e-12);
}

TEST(Correlation, AConstantFollowsNothing) {
  EXPECT_EQ(pearson_correlation(Numbers{2, 2, 2}, Numbers{1, 2, 3}), 0);
  EXPECT_EQ(pearson_correlation(Numbers{1, 2, 3}, Numbers{0.1, 0.1, 0.1}), 0);
  EXPECT_EQ(spearman_correlation(Numbers{1, 2, 3}, Numbers{7, 7, 7}), 0);
  EXPECT_EQ(pearson_correlation(Numbers{}, Numbers{}), 0);
}

} // namespace
} // namespace hydrascope
