#include "engine/base/process.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "engine/run/device_clock.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/touched_pages.h"

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

// A run as large as the one before it would be refused.
TEST_F(ProcessMemory, IsGivenBackWhereMoreIsWantedThanIsFree) {
  constexpr std::int64_t bytes = 192 << 20;
  take_and_free(bytes);
  const std::int64_t before = resident_bytes();
  free_bytes(c10::kCPU, 1);
  EXPECT_GT(resident_bytes(), before - bytes / 2);
  free_bytes(c10::kCPU, 1e18);
  EXPECT_LT(resident_bytes(), before - bytes / 2);
}

TEST(PeakMemory, IsThatSinceItWasReset) {
  constexpr std::int64_t bytes = 192 << 20;
  test::touch_pages(bytes);
  const std::int64_t peak = peak_resident_bytes();
  EXPECT_GT(peak, bytes);
  if (!reset_peak_resident_bytes()) GTEST_SKIP() << "the system does not allow it";
  const std::int64_t now = peak_resident_bytes();
  EXPECT_LT(now, peak - bytes / 2);
  test::touch_pages(bytes);
  EXPECT_GT(peak_resident_bytes(), now + bytes / 2);
}

// Folders as the system's for control groups.
class ControlGroups : public testing::Test {
protected:
  void join(const std::string& lines) const { folder_.write("membership", lines); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    folder_.write(file, text);
  }
  std::optional<std::int64_t> left() const {
    return control_group_bytes(folder_ / "membership", folder_ / "groups");
  }

private:
  test::ScratchFolder folder_;
};

TEST_F(ControlGroups, LeaveWhatTheTightestOfThemLeaves) {
  EXPECT_FALSE(left());
  join("0::/user/program\n");
  EXPECT_FALSE(left());
  write("groups/user/program/memory.max", "max\n");
  write("groups/user/program/memory.current", "400000\n");
  EXPECT_FALSE(left());
  write("groups/user/program/memory.max", "1000000\n");
  EXPECT_EQ(left(), 600'000);
  write("groups/user/program/memory.stat", "anon 5\ninactive_file 50000\nactive_file 7000\n");
  EXPECT_EQ(left(), 657'000);
  write("groups/user/memory.max", "500000\n");
  write("groups/user/memory.current", "450000\n");
  EXPECT_EQ(left(), 50'000);
  write("groups/user/memory.current", "500000\n");
  EXPECT_EQ(left(), 1); // 0 would be unknown
}

// A container's own group is mounted at the root, whatever its path outside is.
TEST_F(ControlGroups, OfVersion1AreThoseOfMemory) {
  join("9:name=systemd:/x\n4:cpu,memory:/docker/abc\n1:cpu:/docker/abc\n0::/\n");
  write("groups/memory/memory.limit_in_bytes", "1000000\n");
  write("groups/memory/memory.usage_in_bytes", "300000\n");
  write("groups/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\ntotal_active_file 500\n");
  EXPECT_EQ(left(), 702'500);
}

} // namespace
} // namespace hydrascope
