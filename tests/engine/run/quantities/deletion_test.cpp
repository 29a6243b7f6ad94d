#include "engine/run/quantities/deletion.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

// Tokens 1 … 8 can be hidden; the target is the sum of what the others hold, as if a model needed just that.
const std::vector<float> kHolds = {9, 4, 0, 1, 3, 0.5, 2, 0.25, 0};
const std::vector<std::int64_t> kCandidates = {1, 2, 3, 4, 5, 6, 7, 8};

double left(const std::vector<std::int64_t>& hidden) {
  double sum = std::accumulate(kHolds.begin(), kHolds.end(), 0.0);
  for (const std::int64_t token : hidden) sum -= static_cast<double>(kHolds[static_cast<std::size_t>(token)]);
  return sum;
}

TEST(Deletion, FollowsTheMapItsReverseAndARandomOrder) {
  std::vector<std::vector<std::int64_t>> asked;
  const DeletionKey key{.layer = 3, .steps = 4, .seed = 1};
  const DeletionResult result = deletion_curves(key, kHolds, kCandidates, {left({}), std::nullopt},
                                                [&](std::vector<std::int64_t> hidden) {
                                                  EXPECT_TRUE(std::is_sorted(hidden.begin(), hidden.end()));
                                                  asked.push_back(hidden);
                                                  return HiddenTarget{left(hidden), std::nullopt};
                                                });
  EXPECT_EQ(result.key, key);
  EXPECT_THAT(result.hidden, testing::ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(result.shares, testing::ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_EQ(asked.size(), static_cast<std::size_t>(deletion_passes(4, 8)));
  // 4 and 3 go first (tokens 1 and 4), then 2 and 1, then ½ and ¼; token 0 cannot be hidden.
  EXPECT_THAT(result.most_first.values, testing::ElementsAre(19.75, 12.75, 9.75, 9, 9));
  EXPECT_THAT(result.least_first.values, testing::ElementsAre(19.75, 19.75, 19, 16, 9));
  EXPECT_TRUE(result.most_first.probabilities.empty());
  EXPECT_DOUBLE_EQ(result.most_first.area, 0.25 * (19.75 / 2 + 12.75 + 9.75 + 9 + 4.5));
  for (const DeletionCurve* curve : {&result.most_first, &result.least_first, &result.random}) {
    EXPECT_EQ(curve->values.front(), 19.75);
    EXPECT_EQ(curve->values.back(), 9);
  }
  EXPECT_LT(result.most_first.area, result.random.area);
  EXPECT_LT(result.random.area, result.least_first.area);
}

TEST(Deletion, TheRandomOrderIsTheSeedsAndHidesEachTokenOnce) {
  const auto order = [](std::uint64_t seed) {
    std::vector<std::vector<std::int64_t>> asked;
    deletion_curves({.layer = 0, .steps = 8, .seed = seed}, kHolds, kCandidates, {}, [&](auto hidden) {
      asked.push_back(hidden);
      return HiddenTarget{};
    });
    std::vector<std::vector<std::int64_t>> random(asked.end() - 7, asked.end());
    for (std::size_t step = 0; step < random.size(); ++step) {
      const std::set<std::int64_t> each(random[step].begin(), random[step].end());
      EXPECT_EQ(each.size(), step + 1);
      EXPECT_TRUE(step == 0 || std::includes(random[step].begin(), random[step].end(),
                                             random[step - 1].begin(), random[step - 1].end()));
    }
    return random;
  };
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(8));
}

TEST(Deletion, TheAreaIsOfTheProbabilitiesWhereThereAreSome) {
  const DeletionResult result =
      deletion_curves({.layer = 0, .steps = 2}, kHolds, kCandidates, {5.0, 1.0}, [](const auto& hidden) {
        return HiddenTarget{4.0, hidden.size() == 8 ? 0.0 : 0.5};
      });
  EXPECT_THAT(result.random.probabilities, testing::ElementsAre(1.0, 0.5, 0.0));
  EXPECT_THAT(result.random.values, testing::ElementsAre(5, 4, 4));
  EXPECT_DOUBLE_EQ(result.random.area, 0.5);
}

TEST(Deletion, TakesNoMoreStepsThanThereAreTokens) {
  EXPECT_EQ(deletion_steps(10, 3), 3);
  EXPECT_EQ(deletion_passes(10, 256), 28);
  EXPECT_EQ(deletion_passes(10, 1), 1);
  EXPECT_EQ(deletion_passes(10, 0), 0);
  const std::vector<std::int64_t> few = {2, 5};
  const DeletionResult result =
      deletion_curves({}, kHolds, few, {}, [](const auto&) { return HiddenTarget{}; });
  EXPECT_THAT(result.hidden, testing::ElementsAre(0, 1, 2));
}

TEST(Deletion, RefusesWhatCannotBeDone) {
  const auto probe = [](const auto&) { return HiddenTarget{}; };
  EXPECT_THROW(deletion_curves({.steps = 0}, kHolds, kCandidates, {}, probe), UsageError);
  EXPECT_THROW(deletion_curves({}, kHolds, {}, {}, probe), UsageError);
}

} // namespace
} // namespace hydrascope
