// Background jobs under ThreadSanitizer.
#include "app/jobs/background_job.h"

#include <memory>
#include <new>
#include <numeric>
#include <semaphore>
#include <stdexcept>

#include <gtest/gtest.h>

namespace hydrascope::app {
namespace {

TEST(BackgroundJob, HandsOverEverythingInItsOrder) {
  constexpr int count = 500;
  std::binary_semaphore ended(0);
  BackgroundJob<int> job(
      [](BackgroundJob<int>& self, const std::stop_token& stop) {
        for (int i = 0; i < count; ++i) {
          self.wait_while_paused(stop);
          self.publish(i);
        }
      },
      [&] { ended.release(); });
  std::vector<int> taken;
  for (bool done = false; !done;) {
    job.pause(true);
    const bool waits = job.waiting();
    const JobUpdate<int> update = job.take();
    taken.insert(taken.end(), update.results.begin(), update.results.end());
    done = update.done;
    if (waits) {
      EXPECT_TRUE(job.paused());
      EXPECT_TRUE(job.take().results.empty()) << "it does not go on while it is paused";
    }
    job.pause(false);
  }
  ended.acquire();
  std::vector<int> expected(count);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(taken, expected);
  EXPECT_TRUE(job.take().results.empty());
  EXPECT_EQ(job.take().problem, "");
}

// What asks in each frame sees the problem with the end of the work, neither before nor never.
TEST(BackgroundJob, ItsProblemComesWithItsEnd) {
  for (int round = 0; round < 200; ++round) {
    BackgroundJob<int> job([](auto&, const auto&) { throw std::runtime_error("no disk"); }, {});
    JobUpdate<int> update;
    while (!update.done) {
      update = job.take();
      EXPECT_EQ(update.problem, update.done ? "no disk" : "");
    }
  }
}

TEST(BackgroundJob, TellsWhatEndedItAndNotThatItWasCancelled) {
  const auto problem_of = [](const BackgroundJob<int>::Work& work) {
    std::binary_semaphore ended(0);
    BackgroundJob<int> job(work, [&] { ended.release(); });
    ended.acquire();
    EXPECT_TRUE(job.done());
    return job.take().problem;
  };
  EXPECT_EQ(problem_of([](auto&, const auto&) { throw std::runtime_error("no disk"); }), "no disk");
  EXPECT_EQ(problem_of([](auto&, const auto&) { throw std::bad_alloc(); }).find("memory: "), 0U);
  EXPECT_EQ(problem_of([](auto&, const auto&) { throw Cancelled(); }), "");
}

TEST(JobSlot, ARetiredJobIsStoppedEvenWhilePausedPublishesNothingMoreAndWakesNobody) {
  std::atomic<int> stopped = 0, woken = 0;
  auto slot = std::make_unique<JobSlot<int>>();
  const auto work = [&](BackgroundJob<int>& self, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      self.publish(1);
      self.wait_while_paused(stop);
    }
    ++stopped;
  };
  for (int round = 0; round < 20; ++round) {
    slot->start(work, [&] { ++woken; });
    slot->job()->pause(round % 2 == 0);
    EXPECT_FALSE(slot->job()->done());
  }
  slot->retire();
  EXPECT_EQ(slot->job(), nullptr);
  while (stopped < 20) std::this_thread::yield();
  slot.reset(); // joins them
  EXPECT_EQ(woken, 0);
}

} // namespace
} // namespace hydrascope::app
