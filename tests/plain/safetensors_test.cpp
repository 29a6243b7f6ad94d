// The safetensors reader on good and on malformed files.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

class Safetensors : public testing::Test {
protected:
  fs::path write(const std::string& bytes) const {
    const fs::path file = folder_ / "file.safetensors";
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  // Length, header, then `data` zero bytes.
  fs::path with_header(const std::string& header, std::size_t data) const {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    return write(bytes + header + std::string(data, '\0'));
  }
  template <typename E>
  std::string refusal(const fs::path& file) const {
    try {
      SafetensorsFile::open(file);
    } catch (const E& error) {
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another exception: " << error.what();
      return {};
    }
    ADD_FAILURE() << "was accepted";
    return {};
  }
  bool broken(const std::string& header, std::size_t data, const std::string& reason) const {
    const std::string message = refusal<BrokenFile>(with_header(header, data));
    if (message.find(reason) != std::string::npos && message.find("file.safetensors") != std::string::npos)
      return true;
    ADD_FAILURE() << "'" << message << "' does not say '" << reason << "'";
    return false;
  }

  test::ScratchFolder folder_;
};

TEST_F(Safetensors, RoundTripKeepsNamesShapesTypesBytesAndMetadata) {
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  const std::uint8_t flags[3] = {1, 0, 1};
  std::map<std::string, TensorView> tensors;
  tensors["b.weight"] = {ElementType::f32, {2, 3}, std::as_bytes(std::span(numbers))};
  tensors["a"] = {ElementType::boolean, {3}, std::as_bytes(std::span(flags))};
  tensors["empty"] = {ElementType::i64, {0, 4}, {}};
  tensors["scalar"] = {ElementType::f32, {}, std::as_bytes(std::span(numbers, 1))};
  const fs::path file = folder_ / "out.safetensors";
  write_safetensors(file, tensors, {{"format", "test"}, {"text", "\"quoted\" ümlaut"}});

  const SafetensorsFile read = SafetensorsFile::open(file);
  ASSERT_EQ(read.tensors().size(), 4U);
  EXPECT_EQ(read.metadata().at("text"), "\"quoted\" ümlaut");
  const TensorView& weight = read.tensors().at("b.weight");
  EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(weight.type, ElementType::f32);
  ASSERT_EQ(weight.bytes.size(), sizeof numbers);
  EXPECT_TRUE(std::ranges::equal(weight.bytes, std::as_bytes(std::span(numbers))));
  EXPECT_EQ(read.tensors().at("a").type, ElementType::boolean);
  EXPECT_TRUE(read.tensors().at("empty").bytes.empty());
  EXPECT_TRUE(read.tensors().at("scalar").shape.empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1)
      << "a temporary was left";
}

TEST_F(Safetensors, ViewsOutliveTheFileObject) {
  const std::int32_t value = 77;
  write_safetensors(folder_ / "f", {{"x", {ElementType::i32, {1}, std::as_bytes(std::span(&value, 1))}}});
  std::shared_ptr<const FileMapping> mapping;
  std::span<const std::byte> bytes;
  {
    const SafetensorsFile file = SafetensorsFile::open(folder_ / "f");
    mapping = file.mapping();
    bytes = file.tensors().at("x").bytes;
  }
  fs::remove(folder_ / "f");
  std::int32_t read = 0;
  std::memcpy(&read, bytes.data(), sizeof read);
  EXPECT_EQ(read, 77);
}

TEST_F(Safetensors, MissingFilesAndFoldersAreErrors) {
  EXPECT_NE(refusal<Error>(folder_ / "absent").find("No such file"), std::string::npos);
  EXPECT_NE(refusal<Error>(folder_.path()).find("regular file"), std::string::npos);
}

TEST_F(Safetensors, ForeignFilesAreToldApart) {
  refusal<ForeignFile>(write(""));
  refusal<ForeignFile>(write("short"));
  refusal<ForeignFile>(write("\x89PNG\r\n\x1a\n and then some more bytes of a picture"));
  refusal<ForeignFile>(with_header("not json", 0));
}

TEST_F(Safetensors, DamagedHeadersAreRefused) {
  broken("{\"a\":", 0, "not valid JSON");
  std::string bytes(8, '\xff');
  EXPECT_NE(refusal<BrokenFile>(write(bytes + "{}")).find("longer than the file"), std::string::npos);
  broken(R"({"a":3})", 0, "not described by an object");
  broken(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "lacks");
  broken(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4, "element type F99");
  broken(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole numbers");
  broken(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "whole numbers");
  broken(
      R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
      1, "'a' is there twice");
  broken(R"({"__metadata__":{"x":1}})", 0, "metadata");
  broken(R"({"__metadata__":[]})", 0, "metadata");
  broken("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", 0,
         "nested more than 100 levels deep");
  broken("{\"a\":" + std::string(99, '[') + std::string(99, ']') + "}", 0, "not described by an object");
  broken("{\"a\":\"\\\"" + std::string(200, '[') + "\"}", 0, "not described by an object"); // within a text
}

TEST_F(Safetensors, OffsetsAreChecked) {
  broken(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "outside the file");
  broken(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "outside the file");
  broken(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "outside the file");
  broken(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", 4, "does not fit its bytes");
  broken(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]}})", 4,
         "outside the file");
  // 2^62 · 2 · 2 elements would wrap around to 0 bytes.
  broken(R"({"a":{"dtype":"F32","shape":[4611686018427387904,2,2],"data_offsets":[0,0]}})", 0,
         "does not fit");
  broken(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      12, "overlap");
  broken(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
      12, "gap");
  broken(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9, "after the last tensor");
}

TEST_F(Safetensors, TruncationAnywhereIsRefused) {
  const float numbers[4] = {1, 2, 3, 4};
  write_safetensors(folder_ / "whole", {{"x", {ElementType::f32, {4}, std::as_bytes(std::span(numbers))}}});
  const std::string whole = read_text_file(folder_ / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(SafetensorsFile::open(write(whole.substr(0, size))), Error) << size;
}

TEST_F(Safetensors, AFailedWriteLeavesTheOldFile) {
  const fs::path nowhere = folder_ / "absent" / "file";
  EXPECT_THROW(write_safetensors(nowhere, {}), Error);
  write_safetensors(folder_ / "kept", {}, {{"a", "1"}});
  fs::create_directory(folder_ / "kept.d");
  EXPECT_THROW(write_safetensors(folder_ / "kept.d", {}), Error);
  EXPECT_EQ(SafetensorsFile::open(folder_ / "kept").metadata().at("a"), "1");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
}

} // namespace
} // namespace hydrascope
