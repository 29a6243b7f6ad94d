// Files and folders that take the place of others: what killed processes left, several writers, devices.
#include "engine/base/temporary.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class Temporary : public testing::Test {
protected:
  const fs::path& folder() const { return scratch_.path(); }
  fs::path file() const { return folder() / "figure.svg"; }
  test::ScratchFolder scratch_;
};

TEST_F(Temporary, TheNextWritingRemovesWhatAKilledProcessLeft) {
  scratch_.write("figure.svg.hydrascope-part", std::string(100'000, 'x'));
  write_file_atomically(file(), "new");
  EXPECT_EQ(read_text_file(file()), "new");
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"figure.svg"}));
}

TEST_F(Temporary, SeveralWritersDoNotMixTheirBytes) {
  const std::string first(1'000'000, 'a'), second(700'000, 'b');
  TemporaryFile begun(file());
  begun.write(first);
  write_file_atomically(file(), second);
  EXPECT_EQ(read_text_file(file()), second);
  begun.commit();
  EXPECT_EQ(read_text_file(file()), first);
  std::vector<std::jthread> threads;
  for (const std::string* bytes : {&first, &second, &first, &second})
    threads.emplace_back([this, bytes] {
      for (int i = 0; i < 25; ++i) write_file_atomically(file(), *bytes);
    });
  threads.clear();
  const std::string last = read_text_file(file());
  EXPECT_TRUE(last == first || last == second);
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"figure.svg"}));
}

TEST_F(Temporary, AnErrorLeavesTheOldFileAlone) {
  scratch_.write("figure.svg", "old");
  {
    TemporaryFile begun(file());
    begun.write("half of the n");
  }
  EXPECT_EQ(read_text_file(file()), "old");
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"figure.svg"}));
}

// In a folder of many users a link could lead to any file.
TEST_F(Temporary, LinksAreNotFollowed) {
  scratch_.write("other", "untouched");
  scratch_.write("second", "untouched");
  fs::create_symlink("other", folder() / "figure.svg.hydrascope-part");
  fs::create_hard_link(folder() / "second", folder() / "figure.svg.hydrascope-part-2");
  write_file_atomically(file(), "new");
  EXPECT_EQ(read_text_file(file()), "new");
  EXPECT_EQ(read_text_file(folder() / "other"), "untouched");
  EXPECT_EQ(read_text_file(folder() / "second"), "untouched");
}

TEST_F(Temporary, ADeviceIsWrittenToAndStays) {
  write_file_atomically("/dev/null", "bytes");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const std::string error = error_of([] { write_file_atomically("/dev/full", "bytes"); });
  EXPECT_THAT(error, HasSubstr("/dev/full: cannot be written (No space left on device); free some space"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Temporary, WhatAShellAppendsToKeepsWhatItHolds) {
  scratch_.write("all.csv", "first\n");
  const int descriptor = ::open((folder() / "all.csv").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  write_file_atomically("/dev/fd/" + std::to_string(descriptor), "second\n");
  ::close(descriptor);
  EXPECT_EQ(read_text_file(folder() / "all.csv"), "first\nsecond\n");
}

TEST_F(Temporary, AFileKeepsItsMode) {
  constexpr fs::perms own = fs::perms::owner_read | fs::perms::owner_write;
  const auto is_private = [&](const char* name) { return fs::status(folder() / name).permissions() == own; };
  scratch_.write("figure.svg", "old");
  fs::permissions(file(), own);
  {
    scratch_.write("figure.svg.hydrascope-part", "of a killed process");
    TemporaryFile begun(file());
    EXPECT_TRUE(is_private("figure.svg.hydrascope-part"));
    TemporaryFile other(file());
    EXPECT_TRUE(is_private("figure.svg.hydrascope-part-2"));
  }
  write_file_atomically(file(), "new");
  EXPECT_EQ(read_text_file(file()), "new");
  EXPECT_TRUE(is_private("figure.svg"));
  write_file_atomically(folder() / "other.svg", "new");
  scratch_.write("usual", "");
  EXPECT_EQ(fs::status(folder() / "other.svg").permissions(), fs::status(folder() / "usual").permissions());
}

TEST_F(Temporary, AReadOnlyFileStaysOneAndItsTemporaryCanBeTakenOver) {
  scratch_.write("figure.svg", "old");
  fs::permissions(file(), fs::perms::owner_read);
  {
    TemporaryFile begun(file());
    EXPECT_EQ(fs::status(folder() / "figure.svg.hydrascope-part").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
  }
  write_file_atomically(file(), "new");
  EXPECT_EQ(read_text_file(file()), "new");
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms::owner_read);
}

TEST_F(Temporary, ASymbolicLinkStaysOne) {
  fs::create_directory(folder() / "real");
  scratch_.write("real/figure.svg", "old");
  fs::create_symlink("real/figure.svg", folder() / "second.svg");
  fs::create_symlink("second.svg", file());
  write_file_atomically(file(), "new");
  EXPECT_TRUE(fs::is_symlink(file()));
  EXPECT_TRUE(fs::is_symlink(folder() / "second.svg"));
  EXPECT_EQ(read_text_file(folder() / "real/figure.svg"), "new");
  EXPECT_EQ(names_in(folder() / "real"), (std::vector<std::string>{"figure.svg"}));

  fs::remove(folder() / "real/figure.svg"); // as open() does, the file is made where the link leads to
  write_file_atomically(file(), "again");
  EXPECT_TRUE(fs::is_symlink(file()));
  EXPECT_EQ(read_text_file(folder() / "real/figure.svg"), "again");
  fs::remove_all(folder() / "real");
  EXPECT_THAT(error_of([&] { write_file_atomically(file(), "nowhere"); }),
              HasSubstr("real/figure.svg: cannot be written (No such file or directory)"));
  fs::create_symlink("loop.svg", folder() / "loop.svg");
  EXPECT_THAT(error_of([&] { write_file_atomically(folder() / "loop.svg", "nowhere"); }),
              HasSubstr("symbolic links"));
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"figure.svg", "loop.svg", "second.svg"}));
}

TEST_F(Temporary, AFolderIsNoFile) {
  EXPECT_THAT(error_of([&] { write_file_atomically(folder(), "bytes"); }), HasSubstr("is a folder"));
}

TEST_F(Temporary, AFolderAppearsWhenItIsWhole) {
  const fs::path target = folder() / "export";
  scratch_.write("x", "");
  fs::create_directories(folder() / "export.hydrascope-part/left");
  write_file_atomically(folder() / "export.hydrascope-part/left/figure.svg", "of a killed process");
  {
    TemporaryFolder begun(target), other(target);
    EXPECT_NE(begun.path(), other.path());
    EXPECT_TRUE(fs::is_empty(begun.path()));
    write_file_atomically(begun.path() / "figure.svg", "new");
    EXPECT_FALSE(fs::exists(target));
    begun.commit();
  }
  EXPECT_EQ(read_text_file(target / "figure.svg"), "new");
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"export", "x"}));
}

TEST_F(Temporary, AFolderThatCannotBeMadeIsNamed) {
  scratch_.write("file", "");
  EXPECT_THAT(error_of([&] { create_folders(folder() / "file/below"); }),
              HasSubstr("file/below: cannot be made (Not a directory)"));
  EXPECT_THAT(error_of([&] { write_file_atomically("/proc/none/x.svg", ""); }),
              HasSubstr("/proc/none/x.svg: cannot be written (No such file or directory)"));
}

} // namespace
} // namespace hydrascope
