// Which results of A and B stand beside each other.
#include "app/jobs/side_pair.h"

#include <cstdint>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace hydrascope::app::tests {
namespace {

class SidePairTest : public testing::Test {
protected:
  static SideResults of(const std::uint64_t generation, const bool fresh) {
    SideResults results;
    auto run = std::make_shared<RunResult>();
    run->generation = generation;
    results.parts = {std::move(run)};
    results.fresh = fresh;
    results.stale = !fresh;
    return results;
  }
  static SideResults failed(const std::uint64_t generation) {
    SideResults results = of(generation, false);
    results.error = "no";
    return results;
  }
  // The generations shown; 0: none.
  std::pair<std::uint64_t, std::uint64_t> shown(const SideResults& a, const SideResults& b,
                                                const Shown view = Shown::all) {
    results_ = pair_.choose(view, a, b);
    const auto generation = [](const SideResults* one) {
      return one->any() == nullptr ? 0 : one->any()->generation;
    };
    return {generation(results_[0]), generation(results_[1])};
  }
  using Generations = std::pair<std::uint64_t, std::uint64_t>;

  SidePair pair_;
  std::array<const SideResults*, 2> results_{};
};

TEST_F(SidePairTest, StaysUntilBothAreNew) {
  EXPECT_EQ(shown(of(1, true), {}), Generations(1, 0)); // B has not run yet
  EXPECT_EQ(shown(of(1, true), of(2, true)), Generations(1, 2));
  EXPECT_EQ(shown(of(1, false), of(2, false)), Generations(1, 2)); // another input
  EXPECT_TRUE(results_[0]->stale && results_[1]->stale);
  EXPECT_EQ(shown(of(3, true), of(2, false)), Generations(1, 2));  // of which A's have come
  EXPECT_EQ(shown(of(3, false), of(2, false)), Generations(1, 2)); // and one more, before B's
  EXPECT_EQ(shown(of(5, true), of(6, true)), Generations(5, 6));
}

// Results of an earlier edition of an adapter, or of a shorter text that a decoder writes, are not stale.
TEST_F(SidePairTest, StaysAlsoWhereNothingIsStale) {
  SideResults earlier = of(2, false);
  earlier.stale = false;
  EXPECT_EQ(shown(of(1, true), of(2, true)), Generations(1, 2));
  EXPECT_EQ(shown(of(3, true), earlier), Generations(1, 2));
  EXPECT_FALSE(results_[1]->stale);
}

TEST_F(SidePairTest, IsGivenUpWhereOneWillNotCome) {
  EXPECT_EQ(shown(of(1, true), of(2, true)), Generations(1, 2));
  EXPECT_EQ(shown(of(3, true), failed(2)), Generations(3, 0));
  EXPECT_EQ(results_[1]->error, "no");
  EXPECT_FALSE(results_[1]->stale);
  EXPECT_EQ(shown(of(3, true), of(2, false)),
            Generations(3, 0)); // it is tried again, and is not to jump back
  EXPECT_EQ(shown(failed(3), failed(2)), Generations(3, 0));
  EXPECT_TRUE(results_[0]->stale);
}

// Alone on the screen B keeps what it showed, as A does.
TEST_F(SidePairTest, LeavesWhatBShowedWhereItIsAlone) {
  EXPECT_EQ(shown(of(1, true), of(2, true), Shown::b), Generations(1, 2));
  const SideResults a = of(3, true), b = failed(2);
  EXPECT_EQ(shown(a, b, Shown::b), Generations(0, 2));
  EXPECT_TRUE(results_[1]->stale);
}

TEST_F(SidePairTest, LeavesOutWhatIsOldWhereTheComparisonBegins) {
  EXPECT_EQ(shown(of(7, true), of(6, false), Shown::a), Generations(7, 6));
  EXPECT_EQ(shown(of(7, true), of(6, false)), Generations(7, 0));
  EXPECT_EQ(shown(of(7, true), of(8, true)), Generations(7, 8));
  EXPECT_EQ(shown({}, {}), Generations(0, 0)); // another model: nothing of the last one stays
  EXPECT_EQ(shown(of(9, true), {}), Generations(9, 0));
}

} // namespace
} // namespace hydrascope::app::tests
