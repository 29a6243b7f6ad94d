#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

// Sets an environment variable for one test.
class Variable {
public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (had_)
      ::setenv(name_, old_.c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST(Paths, HomeVariableNamesTheCheckout) {
  const Variable home("HYDRASCOPE_HOME", test::source_folder().c_str());
  EXPECT_EQ(resource_root(), test::source_folder());
  EXPECT_EQ(assets_folder(), test::source_folder() / "assets");
  const Variable deps("HYDRASCOPE_DEPS", "/somewhere");
  EXPECT_EQ(models_folder(), fs::path("/somewhere/models"));
}

TEST(Paths, AWrongHomeIsSaid) {
  const Variable home("HYDRASCOPE_HOME", "/proc");
  EXPECT_THROW(resource_root(), Error);
}

TEST(Paths, UserFoldersFollowTheBaseDirectories) {
  const Variable cache("XDG_CACHE_HOME", "/x/cache");
  const Variable home("HOME", "/x/home");
  const Variable config("XDG_CONFIG_HOME", "");
  EXPECT_EQ(cache_folder(), fs::path("/x/cache/hydrascope"));
  EXPECT_EQ(config_folder(), fs::path("/x/home/.config/hydrascope"));
}

TEST(TellingNames, HaveTheFoldersThatTellThemApart) {
  using Names = std::vector<std::string>;
  const auto names = [](const std::vector<fs::path>& paths) { return telling_names(paths); };
  EXPECT_EQ(names({"data/a.txt", "data/b.txt"}), (Names{"a.txt", "b.txt"}));
  EXPECT_EQ(names({"/data/mrpc/dev.tsv", "/data/qqp/dev.tsv", "x.tsv"}),
            (Names{"mrpc/dev.tsv", "qqp/dev.tsv", "x.tsv"}));
  EXPECT_EQ(names({"a/one/dev.tsv", "b/one/dev.tsv"}), (Names{"a/one/dev.tsv", "b/one/dev.tsv"}));
  EXPECT_EQ(names({"dev.tsv", "b/dev.tsv", "/dev.tsv"}), (Names{"dev.tsv", "b/dev.tsv", "/dev.tsv"}));
  EXPECT_EQ(names({"pictures/", "more/pictures/"}), (Names{"pictures", "more/pictures"}));
  EXPECT_EQ(names({"a/dev.tsv", "./a/dev.tsv"}), (Names{"dev.tsv", "dev.tsv"}));
  EXPECT_EQ(names({}), Names{});
}

TEST(Hash, IsSha256) {
  EXPECT_EQ(sha256_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Files, AreReplacedAtomically) {
  const test::ScratchFolder folder;
  const fs::path file = folder / "file.txt";
  write_file_atomically(file, "one");
  write_file_atomically(file, "second");
  EXPECT_EQ(read_text_file(file), "second");
  EXPECT_EQ(sha256_of_file(file), sha256_of_text("second"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(read_text_file(folder / "absent"), Error);
  EXPECT_THROW(read_text_file(folder.path()), Error);
  EXPECT_THROW(sha256_of_file(folder / "absent"), Error);
}

TEST(Files, ArePipesOnlyWhereAShellHasOpenedThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "a text", 6), 6);
  ::close(ends[1]);
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0])), "a text");
  ::close(ends[0]);
  const test::ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_text_file(folder / "pipe"), Error);
  EXPECT_THROW(read_text_file("/dev/zero"), Error);
  EXPECT_THROW(sha256_of_file("/dev/zero"), Error);
}

TEST(Files, CanBeReadInPart) {
  const test::ScratchFolder folder;
  const std::string text(3 << 20, 'a');
  folder.write("file", text);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}, text.size(), text.size() + 1})
    EXPECT_EQ(read_beginning(folder / "file", bytes), text.substr(0, bytes)) << bytes;
  EXPECT_EQ(read_text_file(folder / "file", text.size()), text);
  EXPECT_THROW(read_text_file(folder / "file", text.size() - 1), Error);
  EXPECT_GT(read_text_file("/proc/self/status").size(), 100U); // a file that says it is empty
}

} // namespace
} // namespace hydrascope
