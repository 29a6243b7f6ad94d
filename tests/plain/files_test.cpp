#include "engine/base/files.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
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

class FileMappings : public testing::Test {
protected:
  FileMappings()
      : file_(std::filesystem::temp_directory_path() / ("hydrascope-mapped-" + std::to_string(getpid()))) {
    std::ofstream(file_) << std::string(size, 'x');
  }
  ~FileMappings() override { std::filesystem::remove(file_); }

  static constexpr std::size_t size = std::size_t{3} << 20;
  std::filesystem::path file_;
};

std::size_t count(const FileMapping& mapping, const char value) {
  return static_cast<std::size_t>(std::ranges::count(mapping.bytes(), static_cast<std::byte>(value)));
}

TEST_F(FileMappings, AreLostWhereTheFileIsShortened) {
  const FileMapping mapping(file_);
  const std::filesystem::path other_file = file_.string() + "-other";
  std::filesystem::copy_file(file_, other_file);
  const FileMapping other(other_file);
  std::filesystem::remove(other_file); // stays readable: the mapping holds it
  EXPECT_FALSE(any_mapping_lost());
  std::filesystem::resize_file(file_, size / 2);
  mapping.require(); // not read yet
  EXPECT_LT(count(mapping, 'x'), size);
  EXPECT_TRUE(mapping.lost());
  EXPECT_TRUE(any_mapping_lost());
  try {
    mapping.require();
    FAIL() << "a lost mapping counts as read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(file_.filename().string()), std::string::npos) << error.what();
  }
  EXPECT_EQ(count(mapping, '\0'), size); // all of it

  other.require();
  EXPECT_EQ(count(other, 'x'), size);
  const FileMapping moved = FileMapping(file_);
  EXPECT_EQ(count(moved, 'x'), size / 2);
  moved.require();
}

TEST_F(FileMappings, AreLostOnThreadsToo) {
  const FileMapping mapping(file_);
  std::filesystem::resize_file(file_, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(count(mapping, 'x'), 0); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THROW(mapping.require(), Error);
}

TEST_F(FileMappings, LeaveOtherBusErrorsAlone) {
  const FileMapping mapping(file_); // with it the handler is there
  const int descriptor = open(file_.c_str(), O_RDONLY);
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  ASSERT_NE(address, MAP_FAILED);
  const auto* const bytes = static_cast<const volatile char*>(address);
  std::filesystem::resize_file(file_, 0);
  const pid_t child = fork();
  if (child == 0) _exit(bytes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) != 0) << "an access that failed went on";
}

} // namespace
} // namespace hydrascope
