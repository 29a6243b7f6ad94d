// Measures of a classifier against numbers worked out by hand.
#include "engine/training/data/class_counts.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hydrascope::training {
namespace {

ClassCounts counted(const std::size_t classes, const std::vector<std::array<std::int64_t, 2>>& pairs) {
  ClassCounts counts(classes);
  for (const auto& [target, predicted] : pairs) counts.add(target, std::array{predicted});
  return counts;
}

TEST(ClassCounts, TwoClasses) {
  // 6 true and 1 false positives, 3 true and 2 false negatives.
  std::vector<std::array<std::int64_t, 2>> pairs;
  pairs.insert(pairs.end(), 6, {1, 1});
  pairs.insert(pairs.end(), 1, {0, 1});
  pairs.insert(pairs.end(), 3, {0, 0});
  pairs.insert(pairs.end(), 2, {1, 0});
  const ClassCounts counts = counted(2, pairs);
  EXPECT_DOUBLE_EQ(top1(counts), 9.0 / 12);
  EXPECT_DOUBLE_EQ(constant_answer(counts), 8.0 / 12);
  EXPECT_NEAR(matthews_correlation(counts), (6 * 3 - 1 * 2) / std::sqrt(7.0 * 8 * 4 * 5), 1e-12);
  EXPECT_DOUBLE_EQ(f1_of_class(counts, 1), 12.0 / 15);
  EXPECT_DOUBLE_EQ(f1_of_class(counts, 0), 6.0 / 9);
}

TEST(ClassCounts, MoreClassesAndOneThatNeverOccurs) {
  const ClassCounts counts = counted(4, {{0, 0}, {1, 2}, {2, 2}, {2, 2}, {1, 1}});
  EXPECT_NEAR(matthews_correlation(counts), (4 * 5 - 9) / std::sqrt((25.0 - 9) * (25.0 - 11)), 1e-12);
  EXPECT_NEAR(f1_macro(counts), (1 + 2.0 / 3 + 4.0 / 5) / 3, 1e-12);
}

TEST(ClassCounts, MatthewsKnowsNoSkillInOneClassAlone) {
  EXPECT_EQ(matthews_correlation(counted(2, {{0, 0}, {1, 0}, {0, 0}})), 0.0);
  EXPECT_EQ(matthews_correlation(counted(2, {{1, 1}, {1, 0}})), 0.0);
  EXPECT_EQ(matthews_correlation(counted(2, {{1, 0}, {0, 1}})), -1.0);
  EXPECT_EQ(matthews_correlation(ClassCounts(2)), 0.0);
  EXPECT_EQ(top1(ClassCounts(2)), 0.0);
  EXPECT_EQ(constant_answer(ClassCounts(2)), 0.0);
  EXPECT_EQ(f1_macro(ClassCounts(2)), 0.0);
}

TEST(ClassCounts, TopFiveLooksAtTheFirstFive) {
  ClassCounts counts(7);
  const std::array<std::int64_t, 6> best = {3, 1, 4, 0, 5, 2};
  counts.add(5, best);
  counts.add(2, best);
  EXPECT_EQ(top1(counts), 0.0);
  EXPECT_EQ(top5(counts), 0.5);
  EXPECT_EQ(counts.predicted[3], 2);
}

} // namespace
} // namespace hydrascope::training
