// The worker under ThreadSanitizer: everything that the window's thread may call while a run is under way.
#include "engine/run/worker.h"

#include <algorithm>
#include <atomic>
#include <semaphore>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hydrascope {
namespace {

RunRequest numbered(std::uint64_t generation) {
  RunRequest request;
  request.generation = generation;
  return request;
}

TEST(WorkerThreads, EveryLaneEndsWithItsNewest) {
  constexpr int lanes = 3;
  constexpr std::uint64_t newest = 201; // no multiple of seven: a result, not an error
  std::counting_semaphore<> woken(0);
  Worker worker([&] { woken.release(); });
  std::vector<std::jthread> threads;
  for (int lane = 0; lane < lanes; ++lane)
    threads.emplace_back([&worker, lane] {
      for (std::uint64_t generation = 1; generation <= newest; ++generation) {
        worker.submit(numbered(generation), lane);
        if (generation % 10 == 0) worker.release();
        const float progress = worker.progress(lane);
        const auto devices = worker.devices();
        EXPECT_TRUE(devices == nullptr || devices->accelerators.front().name == "cuda:0");
        EXPECT_GE(progress, 0);
        EXPECT_LE(progress, 1);
      }
    });
  std::vector<std::uint64_t> last(lanes, 0);
  while (std::ranges::any_of(last, [](std::uint64_t generation) { return generation < newest; })) {
    woken.acquire();
    for (const WorkerDelivery& delivery : worker.drain()) {
      std::uint64_t& before = last.at(static_cast<std::size_t>(delivery.lane));
      EXPECT_GT(delivery.generation, before);
      EXPECT_EQ(delivery.result == nullptr, delivery.generation % 7 == 0) << delivery.error;
      before = delivery.generation;
    }
  }
  threads.clear();
  while (worker.releasing()) std::this_thread::yield();
  for (int lane = 0; lane < lanes; ++lane) EXPECT_FALSE(worker.busy(lane));
  ASSERT_NE(worker.devices(), nullptr); // found before the first run
  EXPECT_EQ(worker.devices()->accelerators.size(), 1U);
}

TEST(WorkerThreads, NothingIsDeliveredThatWasCancelledAndNothingAfterItsEnd) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> ended = false;
    {
      Worker worker([&] { EXPECT_FALSE(ended); });
      std::jthread canceller([&] {
        for (int i = 0; i < 20; ++i) worker.cancel(0);
      });
      for (std::uint64_t generation = 1; generation <= 20; ++generation)
        worker.submit(numbered(generation), 0);
      canceller.join();
      worker.cancel(0);
      while (worker.busy(0)) std::this_thread::yield();
      EXPECT_TRUE(worker.drain().empty());
      Worker destroyed([&] { EXPECT_FALSE(ended); });
      destroyed.submit(numbered(1));
    }
    ended = true;
  }
}

} // namespace
} // namespace hydrascope
