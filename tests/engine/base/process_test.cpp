#include "engine/base/process.h"

#include <fstream>
#include <future>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace hydrascope {
namespace {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return 4096 * resident;
}

// What jemalloc does.
class ProcessMemory : public testing::Test {
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer has an allocator of its own";
#endif
  }
};

void take_and_free(const std::int64_t bytes) { at::ones({bytes}, at::kByte); }

// One after the other, and all still there at the end: what a thread has freed is given back when it ends.
TEST_F(ProcessMemory, WhatOneThreadFreedTheNextOneTakes) {
  constexpr std::int64_t bytes = 192 << 20;
  take_and_free(bytes);
  const std::int64_t before = resident_bytes();
  std::latch end(1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    std::promise<void> had_its_turn;
    std::future<void> turn = had_its_turn.get_future();
    threads.emplace_back([&end, done = std::move(had_its_turn)]() mutable {
      take_and_free(bytes);
      done.set_value();
      end.wait();
    });
    turn.wait();
  }
  const std::int64_t held = resident_bytes() - before;
  end.count_down();
  EXPECT_LT(held, bytes);
}

TEST_F(ProcessMemory, SmallBlocksAreCutFromALargeOne) {
  take_and_free(512 << 20);
  const std::int64_t before = resident_bytes();
  std::vector<at::Tensor> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(at::ones({2 << 20}, at::kByte));
  EXPECT_LT(resident_bytes() - before, 50 << 20);
}

TEST_F(ProcessMemory, IsGivenBackWhenAsked) {
  constexpr std::int64_t bytes = 192 << 20;
  take_and_free(bytes);
  const std::int64_t before = resident_bytes();
  release_freed_memory();
  EXPECT_LT(resident_bytes(), before - bytes / 2);
}

} // namespace
} // namespace hydrascope
