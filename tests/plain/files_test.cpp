#include "engine/base/files.h"

#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

class ItemLocks : public testing::Test {
protected:
  ItemLocks()
      : file_(std::filesystem::temp_directory_path() / ("hydrascope-pieces-" + std::to_string(getpid()))) {}
  ~ItemLocks() override { std::filesystem::remove(file_); }

  std::optional<ItemLock> take(const std::int64_t piece) const {
    return ItemLock::take(file_, piece, "use another folder");
  }

  std::filesystem::path file_;
};

TEST_F(ItemLocks, AreHeldOneByOne) {
  auto first = take(0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(take(0));
  const auto second = take(1);
  EXPECT_TRUE(second);
  EXPECT_FALSE(take(0)); // looking at another gave nothing away
  const ItemLock moved = std::move(*first);
  first.reset();
  EXPECT_FALSE(take(0));
}

TEST_F(ItemLocks, GoWithTheProcessThatHeldThem) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto held = take(3);
    if (!held || write(ready[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(take(3));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(take(3));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(ItemLocks, SayWhereTheyCannotBe) {
  try {
    ItemLock::take(file_ / "below a file that is none", 0, "use another folder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("use another folder"), std::string::npos) << error.what();
  }
}

} // namespace
} // namespace hydrascope
