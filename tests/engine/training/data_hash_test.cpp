#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/training/data/data_hash.h"
#include "tests/engine/models/golden.h"

namespace hydrascope {
namespace {

using training::data_hash;
using training::stamped_file;

TEST(DataHash, OfAFileIsThatOfItsBytesAndOfSeveralThatOfTheirHashes) {
  const test::ScratchFolder scratch;
  scratch.write("a.txt", "one\n");
  scratch.write("b.txt", "two\n");
  const auto a = scratch.path() / "a.txt", b = scratch.path() / "b.txt";
  EXPECT_EQ(data_hash({a}), sha256_of_text("one\n"));
  EXPECT_EQ(data_hash({a, b}),
            sha256_of_text(sha256_of_text("one\n") + "\n" + sha256_of_text("two\n") + "\n"));
  EXPECT_NE(data_hash({a, b}), data_hash({b, a})) << "the order of the data is that of the training";
  EXPECT_THROW(data_hash({scratch.path() / "missing"}), Error);
}

TEST(DataHash, OfAFolderIsThatOfNamesAndSizes) {
  const test::ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path() / "data/cat");
  scratch.write("data/dog.png", "12345");
  scratch.write("data/cat/b.png", "123");
  scratch.write("data/cat/a.png", "12");
  const auto folder = scratch.path() / "data";
  const std::string hash = data_hash({folder});
  EXPECT_EQ(hash, sha256_of_text("cat/a.png\t2\ncat/b.png\t3\ndog.png\t5\n"));
  EXPECT_EQ(data_hash({folder / ""}), hash) << "with a slash at its end";
  scratch.write("data/cat/a.png", "34");
  EXPECT_EQ(data_hash({folder}), hash) << "pictures are not read";
  scratch.write("data/cat/a.png", "345");
  EXPECT_NE(data_hash({folder}), hash);
}

// What a replaced file of the same size differs in, and a copy that keeps times does not.
TEST(DataHash, AStampIsOfNameSizeAndTimeWhateverTheFolder) {
  namespace fs = std::filesystem;
  const test::ScratchFolder scratch;
  const auto folder = scratch.path() / "data", copy = scratch.path() / "copy";
  fs::create_directories(folder / "cat");
  scratch.write("data/cat/a.png", "12345");
  const auto file = folder / "cat/a.png";
  const std::string stamp = stamped_file(file, folder);
  EXPECT_TRUE(stamp.starts_with("cat/a.png\t5\t") && stamp.ends_with("\n")) << stamp;
  fs::copy(folder, copy, fs::copy_options::recursive);
  fs::last_write_time(copy / "cat/a.png", fs::last_write_time(file));
  EXPECT_EQ(stamped_file(copy / "cat/a.png", copy), stamp);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::milliseconds(1));
  EXPECT_NE(stamped_file(file, folder), stamp);
  EXPECT_EQ(training::listed_file(file, folder), "cat/a.png\t5\n");
  EXPECT_THROW(stamped_file(folder / "missing", folder), Error);
}

} // namespace
} // namespace hydrascope
