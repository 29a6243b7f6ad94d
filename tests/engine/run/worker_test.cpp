#include "engine/run/worker.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/engine/run/fake_model.h"

namespace hydrascope {
namespace {

// Lets a test hold the worker inside a block, and wait for what the worker does, without any timing.
class Gate {
public:
  void pass() { // the worker
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void await_arrival(int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

// Counts wake-ups and waits for deliveries.
class Mailbox {
public:
  std::function<void()> wake() {
    return [this] {
      const std::scoped_lock lock(mutex_);
      ++woken_;
      changed_.notify_all();
    };
  }
  std::vector<WorkerDelivery> await(Worker& worker) {
    for (;;) {
      auto deliveries = worker.drain();
      if (!deliveries.empty()) return deliveries;
      std::unique_lock lock(mutex_);
      const int before = seen_;
      changed_.wait(lock, [&] { return woken_ > before; });
      seen_ = woken_;
    }
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int woken_ = 0, seen_ = 0;
};

std::unique_ptr<Runner> runner_of(FakeOptions options) {
  return std::make_unique<Runner>(std::size_t{1} << 20,
                                  fake_source(std::make_shared<const FakeModel>(std::move(options))));
}

RunRequest numbered(std::uint64_t generation, const std::string& text = "a b c") {
  RunRequest request = fake_request(text);
  request.generation = generation;
  return request;
}

TEST(Worker, DeliversAResult) {
  Mailbox mailbox;
  Worker worker(mailbox.wake(), runner_of({}));
  worker.submit(numbered(1));
  const auto deliveries = mailbox.await(worker);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].generation, 1U);
  ASSERT_TRUE(deliveries[0].result);
  EXPECT_EQ(deliveries[0].result->generation, 1U);
  EXPECT_TRUE(deliveries[0].error.empty());
  EXPECT_EQ(worker.progress(), 1.0F);
  EXPECT_TRUE(worker.drain().empty());
}

TEST(Worker, KnowsTheDevicesBeforeItRuns) {
  Mailbox mailbox;
  Worker worker(mailbox.wake(), runner_of({}));
  worker.submit(numbered(1));
  mailbox.await(worker);
  ASSERT_NE(worker.devices(), nullptr);
  EXPECT_EQ(worker.devices()->no_cuda.empty(), list_devices().no_cuda.empty());
}

TEST(Worker, ErrorsBecomeMessagesAndTheWorkerGoesOn) {
  Mailbox mailbox;
  int calls = 0;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int) {
                                             if (++calls == 1) throw std::logic_error("broken block");
                                             if (calls == 2) throw std::bad_alloc();
                                           }}));
  worker.submit(numbered(1));
  EXPECT_EQ(mailbox.await(worker).front().error, "internal error: broken block");
  worker.submit(numbered(1));
  EXPECT_EQ(mailbox.await(worker).front().error.find("run: out of memory; "), 0U);
  RunRequest bad = numbered(2);
  bad.schedule = ScheduleText{.kernel = "softmaxx"};
  worker.submit(bad);
  const auto deliveries = mailbox.await(worker);
  EXPECT_FALSE(deliveries.front().result);
  EXPECT_NE(deliveries.front().error.find("softmaxx"), std::string::npos);
  EXPECT_EQ(deliveries.front().error.find("internal"), std::string::npos);
  worker.submit(numbered(3));
  EXPECT_TRUE(mailbox.await(worker).front().result);
}

TEST(Worker, ANewerRequestStopsTheRunningOne) {
  Mailbox mailbox;
  Gate gate;
  int blocks = 0;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int) {
                                             ++blocks;
                                             gate.pass();
                                           }}));
  worker.submit(numbered(1, "first text"));
  gate.await_arrival();
  EXPECT_TRUE(worker.busy());
  for (std::uint64_t generation = 2; generation <= 50; ++generation)
    worker.submit(numbered(generation, "later text"));
  worker.submit(numbered(7, "an older request"));
  gate.open();
  const auto deliveries = mailbox.await(worker);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].generation, 50U);
  EXPECT_EQ(blocks, 1 + 4); // one block of the stopped run, then the newest alone
}

TEST(Worker, LanesDoNotStopEachOther) {
  Mailbox mailbox;
  Gate gate;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int) { gate.pass(); }}));
  worker.submit(numbered(1), 0);
  gate.await_arrival();
  worker.submit(numbered(2), 1);
  EXPECT_TRUE(worker.busy(1));
  gate.open();
  std::vector<WorkerDelivery> all;
  while (all.size() < 2)
    for (WorkerDelivery& delivery : mailbox.await(worker)) all.push_back(std::move(delivery));
  EXPECT_EQ(all[0].lane, 0);
  EXPECT_EQ(all[1].lane, 1);
  EXPECT_TRUE(all[0].result && all[1].result);
}

TEST(Worker, ReleasesMemoryOnceNoRequestWaits) {
  int loaded = 0;
  ModelSource source{.load =
                         [&loaded](const std::filesystem::path&) {
                           ++loaded;
                           return std::make_shared<const FakeModel>(FakeOptions{});
                         },
                     .bundled = [] { return std::vector<AdapterInfo>{}; }};
  Mailbox mailbox;
  Worker worker(mailbox.wake(),
                std::make_unique<Runner>(std::size_t{1} << 20, make_model_store(std::move(source))));
  worker.submit(numbered(1));
  worker.release();
  EXPECT_NE(mailbox.await(worker).front().result, nullptr) << "the request comes first";
  while (worker.releasing()) std::this_thread::yield();
  worker.submit(numbered(2));
  EXPECT_NE(mailbox.await(worker).front().result, nullptr);
  EXPECT_EQ(loaded, 2) << "again";
}

TEST(Worker, StaleResultsAreLeftOutOfTheDrain) {
  Mailbox mailbox;
  Gate gate;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int layer) {
                                             if (layer == 3) gate.pass();
                                           }}));
  worker.submit(numbered(1, "first text"));
  gate.await_arrival();
  worker.submit(numbered(2, "second text")); // comes during the last block of the first
  gate.open();
  const auto deliveries = mailbox.await(worker);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].generation, 2U);
}

TEST(Worker, CancelStopsOneLaneAndLeavesTheOther) {
  Mailbox mailbox;
  Gate gate;
  int blocks = 0;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int) {
                                             ++blocks;
                                             gate.pass();
                                           }}));
  worker.submit(numbered(1, "running"), 0);
  gate.await_arrival();
  worker.submit(numbered(2, "waiting"), 1);
  worker.submit(numbered(3, "other lane"), 2);
  worker.cancel(0);
  worker.cancel(1);
  EXPECT_FALSE(worker.busy(1));
  gate.open();
  const auto deliveries = mailbox.await(worker);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].generation, 3U);
  EXPECT_EQ(blocks, 1 + 4); // the running one stopped after its block, the waiting one never began
  worker.submit(numbered(4, "after the cancelled one"), 0);
  EXPECT_EQ(mailbox.await(worker).front().generation, 4U);
}

TEST(Worker, CancelDuringTheLastBlockDeliversNothing) {
  Mailbox mailbox;
  Gate gate;
  Worker worker(mailbox.wake(), runner_of({4, FakeHead::first_token, [&](int layer) {
                                             if (layer == 3) gate.pass();
                                           }}));
  worker.submit(numbered(1, "cancelled"), 0);
  gate.await_arrival();
  worker.cancel(0);
  gate.open();
  worker.submit(numbered(1, "in another lane"), 1);
  const auto deliveries = mailbox.await(worker);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].lane, 1);
}

TEST(Worker, DestructionStopsTheRunAndDropsWhatWaits) {
  constexpr int layers = 4, lanes = 1000; // they take longer than a pause of the thread that stops them
  for (int round = 0; round < 20; ++round) {
    Gate gate;
    std::atomic<int> blocks = 0, woken = 0;
    std::atomic<bool> destroying = false;
    auto model = std::make_shared<const FakeModel>(FakeOptions{layers, FakeHead::first_token, [&](int layer) {
                                                                 ++blocks;
                                                                 if (layer == round % layers) gate.pass();
                                                               }});
    const std::weak_ptr<const FakeModel> left = model;
    auto worker = std::make_unique<Worker>(
        [&] { ++woken; },
        std::make_unique<Runner>(std::size_t{1} << 20, fake_source(std::exchange(model, nullptr))));
    for (int lane = 0; lane < lanes; ++lane) worker->submit(numbered(1, std::to_string(lane)), lane);
    gate.await_arrival();
    std::jthread destroyer([&] {
      destroying = true;
      worker.reset();
    });
    while (!destroying) std::this_thread::yield();
    gate.open();
    destroyer.join();
    EXPECT_TRUE(left.expired()) << "its thread and what it ran have ended";
    EXPECT_LT(blocks, lanes * layers);
    EXPECT_LT(woken, lanes);
  }
}

TEST(Worker, ManyRapidRequestsEndWithTheNewestOfEachLane) {
  Mailbox mailbox;
  Worker worker(mailbox.wake(), runner_of({}));
  for (std::uint64_t generation = 1; generation <= 500; ++generation)
    worker.submit(numbered(generation, generation % 3 == 0 ? "x y z" : "a b c d"),
                  static_cast<int>(generation % 2));
  std::uint64_t last[2] = {0, 0};
  while (last[0] < 500 || last[1] < 499)
    for (const WorkerDelivery& delivery : mailbox.await(worker)) {
      EXPECT_GT(delivery.generation, last[delivery.lane]);
      EXPECT_TRUE(delivery.result) << delivery.error;
      last[delivery.lane] = delivery.generation;
    }
  EXPECT_EQ(last[0], 500U);
  EXPECT_EQ(last[1], 499U);
}

} // namespace
} // namespace hydrascope
