// A team of threads under ThreadSanitizer.
#include "engine/base/thread_team.h"

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

TEST(ThreadTeam, DoesEachPartOnceInManyRegions) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    ASSERT_EQ(team.threads(), threads);
    for (std::int64_t region = 0; region < 300; ++region) {
      const std::int64_t count = region % 40;
      std::vector<int> done(static_cast<std::size_t>(count), 0); // not atomic: parts do not overlap
      team.run(count, 1 + region % 3, [&](const std::int64_t begin, const std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(done, std::vector<int>(static_cast<std::size_t>(count), 1)) << threads << " " << count;
    }
  }
}

TEST(ThreadTeam, MakesNoPartSmallerThanTheGrain) {
  ThreadTeam team(4);
  std::vector<std::int64_t> sizes(4, 0);
  team.run(100, 30, [&](const std::int64_t begin, const std::int64_t end) {
    sizes[static_cast<std::size_t>(begin / 30)] = end - begin;
  });
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{33, 33, 34, 0}));
  int calls = 0;
  team.run(59, 30, [&](const std::int64_t begin, const std::int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 59);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadTeam, GoesOnAfterItsHelpersFellAsleep) {
  ThreadTeam team(3);
  std::vector<int> done(3, 0);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // they wait awake for less
    team.run(3, 1, [&](const std::int64_t begin, std::int64_t) { ++done[static_cast<std::size_t>(begin)]; });
  }
  EXPECT_EQ(done, std::vector<int>(3, 3));
}

TEST(ThreadTeam, ThrowsWhatAPartThrew) {
  ThreadTeam team(3);
  for (const std::int64_t bad : {0, 1, 2}) {
    EXPECT_THROW(team.run(3, 1,
                          [&](const std::int64_t begin, std::int64_t) {
                            if (begin == bad) throw std::runtime_error("a part");
                          }),
                 std::runtime_error);
    int sum = 0;
    team.run(1, 1, [&](std::int64_t, std::int64_t) { ++sum; });
    EXPECT_EQ(sum, 1);
  }
}

TEST(ThreadTeam, IsOneOfEachThread) {
  const auto sum_up = [] {
    for (const int threads : {1, 3, 2}) {
      std::vector<std::int64_t> parts(12, 0);
      run_on_team(threads, 12, 2, [&](const std::int64_t begin, const std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) parts[static_cast<std::size_t>(i)] = i;
      });
      EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), 66);
    }
  };
  std::thread other(sum_up);
  sum_up();
  other.join();
}

} // namespace
} // namespace hydrascope
