// Captures: what tools/capture.py has recorded of six models, files written by hand, and malformed ones.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

// The content of a safetensors file that can be changed and written, whole or damaged.
struct Content {
  struct Tensor {
    std::string dtype = "F32";
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  std::string text() const {
    nlohmann::json header = nlohmann::json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    const std::string described = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::string whole(8, '\0');
    const std::uint64_t length = described.size();
    std::memcpy(whole.data(), &length, 8);
    return whole + described + data;
  }
};

std::string floats(std::size_t count, float value = 0.5F) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const float number = value * static_cast<float>(i % 7);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

Content::Tensor tensor(std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return {"F32", std::move(shape), floats(count)};
}

Content::Tensor mask_of(std::vector<std::int64_t> shape, std::string bytes) {
  return {"BOOL", std::move(shape), std::move(bytes)};
}

// Two layers of two sequences, four heads, two of keys, five tokens.
Content small_capture() {
  Content content;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    content.tensors[prefix + "q"] = tensor({2, 4, 5, 3});
    content.tensors[prefix + "k"] = tensor({2, 2, 5, 3});
    content.tensors[prefix + "v"] = tensor({2, 2, 5, 3});
    content.tensors[prefix + "out"] = tensor({2, 4, 5, 3});
    content.tensors[prefix + "wo"] = tensor({12, 12});
    content.tensors[prefix + "mask"] = mask_of({2, 5}, std::string("\1\1\1\1\1\1\1\1\0\0", 10));
  }
  content.metadata = {
      {"hydrascope_capture", "1"}, {"layers", R"(["a.0.self","a.1.self"])"}, {"causal", "[false,false]"},
      {"scale", "[0.5,0.5]"},      {"tokens", R"(["a","b","c","d","e"])"},   {"source", "by hand"}};
  return content;
}

class CaptureFiles : public testing::Test {
protected:
  fs::path write(const std::string& bytes, const std::string& name = "small.safetensors") const {
    folder_.write(name, bytes);
    return folder_ / name;
  }

  // Opens the capture and reads all its numbers. Returns the error's message; empty: there was none.
  std::string refusal(const std::string& bytes) const {
    const fs::path file = write(bytes);
    try {
      const Capture capture = Capture::open(file);
      for (std::size_t layer = 0; layer < capture.layers().size(); ++layer)
        for (std::int64_t item = 0; item < capture.layers()[layer].batch; ++item)
          capture.check_numbers(layer, item);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file.string())) << message;
      EXPECT_NE(message.find("; "), std::string::npos) << "no remedy: " << message;
      return message;
    }
    return {};
  }

  void expect_refused(const std::function<void(Content&)>& change, const std::string& reason) const {
    Content content = small_capture();
    change(content);
    const std::string message = refusal(content.text());
    EXPECT_NE(message.find(reason), std::string::npos)
        << "'" << message << "' does not say '" << reason << "'";
  }

  test::ScratchFolder folder_;
};

fs::path golden(const std::string& name) {
  return test::source_folder() / "tests" / "golden" / "captures" / (name + ".safetensors");
}

TEST(Captures, OfSixModelsAreRead) {
  struct Expected {
    const char* name;
    std::vector<std::size_t> layers; // of each part
    std::int64_t batch, heads, key_heads, tokens;
    bool causal;
  };
  for (const Expected& expected :
       {Expected{"bert", {2}, 2, 4, 4, 9, false}, Expected{"vit", {2}, 1, 4, 4, 17, false},
        Expected{"timm-vit", {2}, 1, 4, 4, 17, false}, Expected{"gpt2", {2}, 1, 4, 4, 8, true},
        Expected{"llama", {2}, 1, 4, 2, 10, true}, Expected{"whisper", {2, 2, 2}, 1, 4, 4, 12, false}}) {
    SCOPED_TRACE(expected.name);
    const Capture capture = Capture::open(golden(expected.name));
    std::vector<std::size_t> layers;
    for (const CapturePart& part : capture.parts()) layers.push_back(part.layers.size());
    EXPECT_EQ(layers, expected.layers);
    const CaptureLayer& first = capture.layers().front();
    EXPECT_EQ(first.batch, expected.batch);
    EXPECT_EQ(first.heads, expected.heads);
    EXPECT_EQ(first.key_heads, expected.key_heads);
    EXPECT_EQ(first.queries, expected.tokens);
    EXPECT_EQ(first.causal, expected.causal);
    EXPECT_TRUE(first.out && first.wo);
    EXPECT_NE(capture.tokens(first.queries, 0), nullptr);
    EXPECT_TRUE(capture.notes().empty());
    for (std::size_t layer = 0; layer < capture.layers().size(); ++layer) capture.check_numbers(layer, 0);
  }
}

TEST(Captures, HaveTokensMasksAndPictures) {
  const Capture vit = Capture::open(golden("vit"));
  const CaptureTokens& patches = *vit.tokens(17, 0);
  EXPECT_EQ(patches.rows, 4);
  EXPECT_EQ(patches.prefix, 1);
  EXPECT_TRUE(fs::exists(patches.image)) << patches.image;
  const Capture bert = Capture::open(golden("bert"));
  EXPECT_EQ(bert.tokens(9, 1)->texts.front(), "[CLS]");
  const std::vector<bool>& mask = bert.layers().front().mask;
  EXPECT_EQ(std::ranges::count(mask, true), 9 + 6);
  const Capture whisper = Capture::open(golden("whisper"));
  const CaptureLayer& cross = whisper.layers()[whisper.parts().back().layers.front()];
  EXPECT_EQ(cross.queries, 5);
  EXPECT_EQ(cross.keys, 12);
  EXPECT_EQ(whisper.tokens(cross.keys, 0)->texts.at(1), "20 ms");
  EXPECT_EQ(whisper.parts().back().name, "decoder.layers.*.encoder_attn");
}

TEST_F(CaptureFiles, NeedNoMetadata) {
  Content content;
  content.tensors["layers.0.q"] = content.tensors["layers.0.k"] = content.tensors["layers.0.v"] =
      tensor({1, 1, 4, 16});
  const Capture capture = Capture::open(write(content.text()));
  EXPECT_EQ(capture.layers().front().scale, 0.25);
  EXPECT_FALSE(capture.layers().front().causal);
  EXPECT_EQ(capture.tokens(4, 0), nullptr);
}

TEST_F(CaptureFiles, RecogniseMasksThatAreCausalOrOfKeys) {
  Content content = small_capture();
  std::string lower, added;
  for (int b = 0; b < 2; ++b)
    for (int n = 0; n < 5; ++n)
      for (int m = 0; m < 5; ++m) {
        const bool may = m <= n && (b == 0 || m < 3);
        lower += may ? '\1' : '\0';
        const float number = may ? 0.0F : std::numeric_limits<float>::lowest();
        added.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
  content.tensors["layers.0.mask"] = mask_of({2, 1, 5, 5}, lower);
  content.tensors["layers.1.mask"] = {"F32", {2, 1, 5, 5}, added};
  const Capture capture = Capture::open(write(content.text()));
  for (const CaptureLayer& layer : capture.layers()) {
    EXPECT_TRUE(layer.causal);
    EXPECT_EQ(layer.mask, std::vector<bool>({true, true, true, true, true, true, true, true, false, false}));
  }
  // One that broadcasts is every sequence's, in both ways of writing it.
  Content shared = content;
  const std::string second = lower.substr(25);
  shared.tensors["layers.0.mask"] = mask_of({1, 1, 5, 5}, second);
  shared.tensors["layers.1.mask"] = {"F32", {1, 1, 5, 5}, added.substr(25 * sizeof(float))};
  const Capture shared_mask = Capture::open(write(shared.text()));
  for (const CaptureLayer& layer : shared_mask.layers()) {
    EXPECT_TRUE(layer.causal);
    EXPECT_EQ(layer.mask,
              std::vector<bool>({true, true, true, false, false, true, true, true, false, false}));
  }
  content.tensors["layers.0.mask"].bytes[3] = '\1'; // the first query attends to the fourth key
  EXPECT_NE(refusal(content.text()).find("attend to different keys"), std::string::npos);
  const float bias = 0.25F;
  std::memcpy(added.data(), &bias, sizeof bias);
  content = small_capture();
  content.tensors["layers.1.mask"] = {"F32", {2, 1, 5, 5}, added};
  EXPECT_NE(refusal(content.text()).find("adds a bias"), std::string::npos);
  std::string heads(std::size_t{2} * 4 * 5 * 5 * sizeof bias, '\0');
  std::memcpy(heads.data() + 30 * sizeof bias, &bias, sizeof bias); // in the second head
  content.tensors["layers.1.mask"] = {"F32", {2, 4, 5, 5}, heads};
  EXPECT_NE(refusal(content.text()).find("adds a bias"), std::string::npos);
}

TEST_F(CaptureFiles, AreNamedWithPartAndSequence) {
  const fs::path file = write(small_capture().text());
  EXPECT_EQ(capture_address(file)->path, file);
  const auto second = capture_address(file.string() + ":0:1");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path, file);
  EXPECT_EQ(second->item, 1);
  EXPECT_EQ(part_of(Capture::open(file), *second), 0U);
  EXPECT_FALSE(capture_address(write("no capture", "other.safetensors")));
  EXPECT_FALSE(capture_address(folder_ / "missing.safetensors"));
  const Capture whisper = Capture::open(golden("whisper"));
  const auto of = [](const std::string& part) {
    return *capture_address(golden("whisper").string() + ":" + part);
  };
  EXPECT_EQ(part_of(whisper, of("encoder_attn")), 2U);
  EXPECT_EQ(part_of(whisper, of("1")), 1U);
  for (const char* wrong : {"3", "decoder", "nothing", "0:1", "0:x", "0:-1"})
    EXPECT_THROW(part_of(whisper, of(wrong)), UsageError) << wrong;
}

// What is shown of a part is shown of all its layers, such as which tokens are padding.
TEST_F(CaptureFiles, LayersOfOtherMasksOrHeadsOfKeysAreOtherParts) {
  EXPECT_EQ(Capture::open(write(small_capture().text())).parts().size(), 1U);
  Content masks = small_capture();
  masks.tensors["layers.1.mask"] = mask_of({2, 5}, std::string("\1\1\1\1\0\1\1\1\1\0", 10));
  EXPECT_EQ(Capture::open(write(masks.text())).parts().size(), 2U);
  masks.tensors.erase("layers.1.mask");
  EXPECT_EQ(Capture::open(write(masks.text())).parts().size(), 2U);
  Content heads = small_capture();
  heads.tensors["layers.1.k"] = heads.tensors["layers.1.v"] = tensor({2, 4, 5, 3});
  EXPECT_EQ(Capture::open(write(heads.text())).parts().size(), 2U);
}

TEST_F(CaptureFiles, ShowPicturesOfTheirOwnFolderAlone) {
  const auto opened = [&](const std::string& image) {
    Content content = small_capture();
    content.metadata["tokens"] = nlohmann::json{{"rows", 1}, {"columns", 5}, {"image", image}}.dump();
    return Capture::open(write(content.text()));
  };
  for (const char* inside : {"cat.png", "pictures/cat.png", "..cat.png"}) {
    const Capture capture = opened(inside);
    EXPECT_EQ(capture.tokens(5, 0)->image, folder_ / inside);
    EXPECT_TRUE(capture.notes().empty());
  }
  for (const char* outside : {"/dev/zero", "../cat.png", "pictures/../../cat.png"}) {
    const Capture capture = opened(outside);
    EXPECT_TRUE(capture.tokens(5, 0)->image.empty()) << outside;
    ASSERT_EQ(capture.notes().size(), 1U) << outside;
    EXPECT_NE(capture.notes().front().find(outside), std::string::npos) << capture.notes().front();
  }
}

TEST_F(CaptureFiles, SayOnceOfEachNumberOfTokensThatNoLayerHasIt) {
  Content content = small_capture();
  nlohmann::json sets = nlohmann::json::array();
  for (int i = 0; i < 1000; ++i) sets.push_back(std::vector<std::string>(i % 2 == 0 ? 5 : 7, "a"));
  content.metadata["tokens"] = sets.dump();
  const Capture capture = Capture::open(write(content.text()));
  ASSERT_EQ(capture.notes().size(), 1U);
  EXPECT_NE(capture.notes().front().find("names 7 tokens"), std::string::npos) << capture.notes().front();
  EXPECT_NE(capture.tokens(5, 0), nullptr);
}

// Whatever a folder holds under such a name, looking for captures ends.
TEST_F(CaptureFiles, AreNoPipes) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.safetensors").c_str(), 0600), 0);
  EXPECT_TRUE(captures_in(folder_.path()).empty());
  EXPECT_THROW(Capture::open(folder_ / "pipe.safetensors"), Error);
}

TEST_F(CaptureFiles, MayBeSpreadOverAFolder) {
  const Content whole = small_capture();
  for (const char layer : {'0', '1'}) {
    Content part;
    if (layer == '0') part.metadata = whole.metadata;
    for (const auto& [name, one] : whole.tensors)
      if (name[7] == layer) part.tensors[name] = one;
    write(part.text(), std::string("part-") + layer + ".safetensors");
  }
  EXPECT_EQ(captures_in(folder_.path()), std::vector<fs::path>{folder_.path()});
  ASSERT_TRUE(capture_address(folder_.path()));
  EXPECT_EQ(Capture::open(folder_.path()).layers().size(), 2U);
  fs::remove(folder_ / "part-1.safetensors");
  write(whole.text(), "b.safetensors");
  fs::remove(folder_ / "part-0.safetensors");
  write(whole.text(), "a.safetensors");
  EXPECT_EQ(captures_in(folder_.path()),
            (std::vector<fs::path>{folder_ / "a.safetensors", folder_ / "b.safetensors"}));
  EXPECT_FALSE(capture_address(folder_.path()));
}

TEST_F(CaptureFiles, SayWhatIsWrong) {
  EXPECT_EQ(refusal(small_capture().text()), "");
  const auto erase = [](const char* name) {
    return [name](Content& content) { content.tensors.erase(name); };
  };
  const auto replace = [](const char* name, Content::Tensor other) {
    return [name, other](Content& content) { content.tensors[name] = other; };
  };
  const auto say = [](const char* key, const std::string& value) {
    return [key, value](Content& content) { content.metadata[key] = value; };
  };
  expect_refused(erase("layers.1.v"), "lacks layers.1.v");
  expect_refused(
      [](Content& content) {
        content.tensors["layers.4.q"] = tensor({2, 4, 5, 3});
        content.metadata.clear();
      },
      "lacks layers.2.q of 5 layers");
  expect_refused(replace("layers.0.k", tensor({2, 3, 5, 3})), "its heads do not divide");
  expect_refused(replace("layers.0.k", tensor({2, 2, 6, 3})), "differ in shape");
  expect_refused(replace("layers.1.v", tensor({2, 2, 5, 4})), "need one width");
  expect_refused(replace("layers.1.k", tensor({1, 2, 5, 3})), "other sequences");
  expect_refused(replace("layers.1.q", tensor({2, 4, 15})), "not (B,H,N,d)");
  expect_refused(replace("layers.1.q", {"I32", {2, 4, 5, 3}, floats(120)}), "is I32");
  expect_refused(replace("layers.1.q", {"F32", {2, 4, 0, 3}, ""}), "has the shape (2,4,0,3)");
  expect_refused(replace("layers.0.out", tensor({2, 4, 5, 4})), "layers.0.out");
  expect_refused(replace("layers.0.wo", tensor({12, 11})), "layers.0.wo");
  expect_refused(replace("layers.0.mask", mask_of({2, 4}, std::string(8, '\1'))),
                 "layers.0.mask has the shape");
  expect_refused(replace("layers.0.mask", mask_of({2, 5}, std::string(10, '\0'))), "no real token");
  expect_refused(say("causal", "\"yes\""), "neither true nor false");
  expect_refused(say("causal", "[true]"), "1 entries for 2 layers");
  expect_refused(say("causal", std::string(101, '[') + std::string(101, ']')), "nested more than 100");
  expect_refused(say("scale", "0"), "is not a positive number");
  expect_refused(say("scale", "{"), "is not JSON");
  expect_refused(say("layers", "[\"one\"]"), "not a list of 2 names");
  expect_refused(say("tokens", "{\"rows\":0,\"columns\":2}"), "no whole number rows");
  expect_refused(say("hydrascope_capture", "2"), "format 2");
  expect_refused(
      [](Content& content) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(content.tensors["layers.1.k"].bytes.data() + 12 * sizeof nan, &nan, sizeof nan);
      },
      "layers.1.k holds NaN or infinity at token 4, head 0");
  // Padding may hold anything.
  Content padded = small_capture();
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(padded.tensors["layers.1.k"].bytes.data() + (30 + 12) * sizeof infinite, &infinite,
              sizeof infinite);
  EXPECT_EQ(refusal(padded.text()), "");
}

// ---- Malformed captures by the thousand

class Mutations {
public:
  explicit Mutations(unsigned seed) : random_(seed) {}

  // The small capture, made malformed in one of ten ways.
  std::string next(int way) {
    Content content = small_capture();
    const std::string layer = "layers." + std::to_string(below(2)) + ".";
    Content::Tensor& one = content.tensors[layer + pick({"q", "k", "v"})];
    switch (way) {
      case 0: { // truncated
        const std::string whole = content.text();
        return whole.substr(0, below(whole.size()));
      }
      case 1: // an extent that does not fit the bytes
        one.shape[below(4)] += 1 + static_cast<std::int64_t>(below(1000));
        break;
      case 2: // a foreign type of numbers
        one.dtype =
            pick({"I64", "I32", "I16", "I8", "U8", "BOOL", "F16", "F64", "F8_E4M3", "C64", "", "f32"});
        break;
      case 3: { // NaN or infinity in the first sequence, which has no padding
        const std::uint32_t bits = pick_bits();
        const std::size_t floats_of_first = one.bytes.size() / (2 * sizeof bits);
        std::memcpy(one.bytes.data() + below(floats_of_first) * sizeof bits, &bits, sizeof bits);
        break;
      }
      case 4: // absurd sizes
        one.shape[below(4)] = std::array<std::int64_t, 5>{0, -1, std::int64_t{1} << 40, std::int64_t{1} << 62,
                                                          std::numeric_limits<std::int64_t>::max()}[below(5)];
        break;
      case 5: // a tensor is missing
        content.tensors.erase(layer + pick({"q", "k", "v"}));
        break;
      case 6: { // metadata of a wrong kind
        const auto& [key, value] = wrong_metadata()[below(wrong_metadata().size())];
        content.metadata[key] = value;
        break;
      }
      case 7: { // a mask that cannot be
        Content::Tensor& mask = content.tensors[layer + "mask"];
        const std::size_t keys = 6 + below(9); // the layer has five
        if (below(2) == 0)
          mask.bytes.assign(mask.bytes.size(), '\0');
        else
          mask = mask_of({2, static_cast<std::int64_t>(keys)}, std::string(2 * keys, '\1'));
        break;
      }
      case 8: { // the length of the header
        std::string whole = content.text();
        const std::uint64_t length = random_() | (std::uint64_t{1} << (20 + below(43)));
        std::memcpy(whole.data(), &length, 8);
        return whole;
      }
      default: { // whole tensors of shapes that do not fit together
        std::vector<std::int64_t> shape = one.shape;
        shape[below(4)] += 1;
        if (below(4) == 0) shape.pop_back();
        one = tensor(shape);
        break;
      }
    }
    return content.text();
  }

private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::string pick(const std::vector<std::string>& words) { return words[below(words.size())]; }
  std::uint32_t pick_bits() {
    constexpr std::array<std::uint32_t, 4> bits = {0x7fc0'0000, 0x7f80'0000, 0xff80'0000, 0x7fff'ffff};
    return bits[below(bits.size())];
  }
  static const std::vector<std::pair<std::string, std::string>>& wrong_metadata() {
    static const std::vector<std::pair<std::string, std::string>> wrong = {
        {"causal", "1"},
        {"causal", "[true]"},
        {"causal", "[true,null]"},
        {"causal", "tru"},
        {"scale", "-1"},
        {"scale", "[0.5]"},
        {"scale", "\"half\""},
        {"scale", "1e999"},
        {"scale", "[[1],[1]]"},
        {"layers", "{}"},
        {"layers", "[1,2]"},
        {"layers", "[]"},
        {"layers", "\xff\xfe"},
        {"tokens", "7"},
        {"tokens", "[]"},
        {"tokens", "[[1]]"},
        {"tokens", "{\"rows\":2}"},
        {"tokens", "{\"rows\":1e9,\"columns\":1}"},
        {"tokens", "[\"a\",3]"},
        {"tokens", "{\"rows\":2,\"columns\":2,\"image\":7}"},
        {"hydrascope_capture", "99"}};
    return wrong;
  }

  std::mt19937_64 random_;
};

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::size_t mappings_of(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(file) != std::string::npos ? 1 : 0;
  return count;
}

TEST_F(CaptureFiles, AThousandMalformedOnesAreRefused) {
  Mutations mutations(26);
  const std::size_t open_before = entries("/proc/self/fd");
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = mutations.next(i % 10);
    EXPECT_NE(refusal(bytes), "") << "mutation " << i << " was accepted";
  }
  // What was opened is closed again; the sanitizer finds what is not freed.
  EXPECT_EQ(entries("/proc/self/fd"), open_before);
  EXPECT_EQ(mappings_of(folder_.path().string()), 0U);
}

} // namespace
} // namespace hydrascope
