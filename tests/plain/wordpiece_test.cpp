// The tokenizer against Hugging Face's: 10,000 generated lines, explicit cases, every code point.
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/models/tokenizer/wordpiece.h"
#include "tests/support/checkout.h"
#include "tests/support/line_generator.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
const fs::path golden = test::source_folder() / "tests" / "golden" / "wordpiece";

const std::vector<std::string>& generated_lines() {
  static const std::vector<std::string> lines = test::LineGenerator(golden / "generator.json").lines();
  return lines;
}

std::vector<std::int32_t> encode(const WordPiece& tokenizer, std::string_view line) {
  const std::size_t tab = line.find('\t');
  return tab == std::string_view::npos ? tokenizer.encode(line)
                                       : tokenizer.encode(line.substr(0, tab), line.substr(tab + 1));
}

std::vector<std::string> tokens_of(const WordPiece& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const std::int32_t id : tokenizer.encode(text)) tokens.push_back(tokenizer.token(id));
  return tokens;
}

// The hashes of all lines' ids, each as little-endian uint32.
std::string hashes(const WordPiece& tokenizer) {
  std::string result;
  for (const std::string& line : generated_lines()) {
    const auto ids = encode(tokenizer, line);
    const std::uint32_t hash =
        test::fnv32({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]});
    result.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  }
  return result;
}

void expect_same_hashes(const WordPiece& tokenizer, const fs::path& expected_file) {
  const std::string expected = read_text_file(expected_file);
  const std::string actual = hashes(tokenizer);
  ASSERT_EQ(actual.size(), expected.size());
  int differing = 0;
  for (std::size_t i = 0; i < expected.size(); i += 4)
    if (expected.compare(i, 4, actual, i, 4) != 0 && ++differing <= 3)
      ADD_FAILURE() << "line " << i / 4 << ": " << generated_lines()[i / 4];
  EXPECT_EQ(differing, 0);
}

TEST(WordPieceGolden, TheGeneratorMakesTheSameLines) {
  std::string whole;
  for (const std::string& line : generated_lines()) whole += (whole.empty() ? "" : "\n") + line;
  const auto summary = nlohmann::json::parse(read_text_file(golden / "summary.json"));
  // The first line could be empty, which the joining above would swallow.
  ASSERT_FALSE(generated_lines().front().empty());
  EXPECT_EQ(whole.size(), summary["bytes"].get<std::size_t>());
  EXPECT_EQ(test::fnv64(whole), std::stoull(summary["fnv64"].get<std::string>(), nullptr, 16));
}

TEST(WordPieceGolden, TenThousandLinesUncased) {
  expect_same_hashes(load_wordpiece(golden / "uncased"), golden / "uncased" / "expected.fnv");
}

TEST(WordPieceGolden, TenThousandLinesCased) {
  expect_same_hashes(load_wordpiece(golden / "cased"), golden / "cased" / "expected.fnv");
}

TEST(WordPieceGolden, TenThousandLinesWithTheBundledModel) {
  const fs::path folder = test::deps_folder() / "models" / "minilm";
  if (!fs::exists(folder / "tokenizer.json")) GTEST_SKIP() << "set-up has not fetched " << folder;
  expect_same_hashes(load_wordpiece(folder), golden / "minilm" / "expected.fnv");
}

TEST(WordPieceGolden, Options) {
  const auto summary = nlohmann::json::parse(read_text_file(golden / "summary.json"));
  for (const char* name : {"uncased", "cased"}) {
    for (const auto& variant : summary["variants"][name]) {
      WordPieceSettings settings = read_wordpiece_settings(golden / name);
      if (variant.contains("strip_accents")) settings.normalizer.strip_accents = variant["strip_accents"];
      if (variant.contains("tokenize_chinese_chars"))
        settings.normalizer.handle_chinese_chars = variant["tokenize_chinese_chars"];
      EXPECT_EQ(test::fnv64(hashes(WordPiece(std::move(settings), name))),
                std::stoull(variant["fnv64"].get<std::string>(), nullptr, 16))
          << name << " " << variant;
    }
  }
}

TEST(WordPieceGolden, ExplicitCases) {
  const auto cases = nlohmann::json::parse(read_text_file(golden / "explicit.json"));
  for (const char* name : {"uncased", "cased"}) {
    const WordPiece tokenizer = load_wordpiece(golden / name);
    for (const auto& one : cases) {
      const std::string text = one["text"];
      const auto ids = one.contains("pair") ? tokenizer.encode(text, one["pair"].get<std::string>())
                                            : tokenizer.encode(text);
      EXPECT_EQ(ids, one[name].get<std::vector<std::int32_t>>()) << name << " " << one.dump();
    }
  }
}

TEST(WordPieceGolden, EveryCodePointIsClassedAsTheReferenceDoes) {
  const std::string expected = read_text_file(golden / "codepoints.fnv");
  ASSERT_EQ(expected.size(), 4U * 0x1100);
  for (std::uint32_t block = 0; block < 0x1100; ++block) {
    std::string data;
    for (std::uint32_t point = 256 * block; point < 256 * (block + 1); ++point) {
      if (point >= 0xD800 && point < 0xE000) continue;
      std::string text = "a";
      append_code_point(text, point);
      const std::string normal = normalize_text(text + "b", NormalizerOptions{});
      for (const std::string_view word : split_words(normal)) data.append(word).append(1, '\x01');
      data += '\x02';
    }
    std::uint32_t hash = 0;
    std::memcpy(&hash, expected.data() + 4 * block, 4);
    EXPECT_EQ(test::fnv32(data), hash) << "block " << std::hex << block;
  }
}

TEST(WordPiece, CountsWords) {
  const WordPiece tokenizer = load_wordpiece(golden / "uncased");
  const auto pieces = tokenizer.pieces("the the[SEP]the!");
  ASSERT_EQ(pieces.size(), 5U);
  const std::array<int, 5> words{0, 1, -1, 2, 3};
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(pieces[i].word, words[i]);
  EXPECT_EQ(tokenizer.pieces("the", 7).front().word, 7);
}

TEST(WordPiece, InvalidBytesAndLongWordsAreTaken) {
  const WordPiece tokenizer = load_wordpiece(golden / "uncased");
  EXPECT_EQ(tokenizer.encode("the\xff\xfe the"), tokenizer.encode("the the"));
  EXPECT_EQ(tokenizer.encode("\xe2\x82"), tokenizer.encode(""));
  EXPECT_EQ(tokenizer.encode(std::string(101, 'a')).size(), 3U);
  EXPECT_GT(tokenizer.encode(std::string(100, 'a')).size(), 3U);
}

// The tokens that Hugging Face's tokenizers 0.23 gives. Stripping accents leaves the letter; where they stay,
// the word has more than 100 characters.
TEST(WordPiece, HalfAMillionMarksOnOneLetter) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323"; // above and below: they change places
  text += " the";
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of(load_wordpiece(golden / "uncased"), text), (Tokens{"[CLS]", "a", "the", "[SEP]"}));
  EXPECT_EQ(tokens_of(load_wordpiece(golden / "cased"), text), (Tokens{"[CLS]", "[UNK]", "the", "[SEP]"}));
}

TEST(WordPiece, AWordAndALineOfAMegabyte) {
  std::vector<std::string> expected{"[CLS]"};
  std::string line;
  for (int i = 0; i < 250'000; ++i) {
    line += "the ";
    expected.emplace_back("the");
  }
  expected.emplace_back("[SEP]");
  for (const char* const name : {"uncased", "cased"}) {
    const WordPiece tokenizer = load_wordpiece(golden / name);
    EXPECT_EQ(tokens_of(tokenizer, std::string(1'000'000, 'a') + " the"),
              (std::vector<std::string>{"[CLS]", "[UNK]", "the", "[SEP]"}));
    EXPECT_TRUE(tokens_of(tokenizer, line) == expected) << name; // a failure does not print them all
  }
}

TEST(WordPiece, SpecialTokensHaveTheirOptions) {
  WordPieceSettings settings;
  settings.vocabulary = {"[UNK]", "[CLS]", "[SEP]", "<m>", "a", "##b", "b", "!"};
  SpecialToken token;
  token.text = "<m>";
  token.id = 3;
  token.strip_left = true;
  token.single_word = true;
  settings.special = {token};
  const WordPiece tokenizer(settings, "test");
  EXPECT_EQ(tokenizer.encode("a  <m> b"), (std::vector<std::int32_t>{1, 4, 3, 6, 2}));
  EXPECT_EQ(tokenizer.encode("ab"), (std::vector<std::int32_t>{1, 4, 5, 2}));
  // Not a word of its own: no special token, but characters that the vocabulary lacks.
  EXPECT_EQ(tokenizer.encode("a<m>").back(), 2);
  for (const auto& piece : tokenizer.pieces("a<m>")) EXPECT_NE(piece.id, 3);
}

TEST(WordPieceFiles, ErrorsNameTheFile) {
  const test::ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  const auto write = [&](const char* file, const std::string& text) { scratch.write(file, text); };
  EXPECT_THROW(load_wordpiece(folder), Error);
  write("vocab.txt", "[UNK]\n[CLS]\na\n");
  EXPECT_THROW(load_wordpiece(folder), BrokenFile); // no [SEP]
  write("tokenizer.json", "{");
  EXPECT_THROW(load_wordpiece(folder), BrokenFile);
  write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {}}})");
  EXPECT_THROW(load_wordpiece(folder), ForeignFile);
  const std::string head =
      R"({"pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": {"type": "BertNormalizer",
    "lowercase": false}, "added_tokens": [{"id": 2, "content": "[SEP]"}], "model": {"type": "WordPiece", "vocab": )";
  write("tokenizer.json", head + R"({"[UNK]": 0, "[CLS]": -1}}})");
  EXPECT_THROW(load_wordpiece(folder), BrokenFile);
  write("tokenizer.json", head + R"({"[UNK]": 0, "[CLS]": 1, "A": 3}}, "truncation": {"max_length": 1}})");
  EXPECT_EQ(load_wordpiece(folder).encode("A a A"), (std::vector<std::int32_t>{1, 3, 0, 3, 2}));
}

TEST(WordPieceFiles, JapaneseTokenizersAreNotReadAsBerts) {
  const test::ScratchFolder scratch;
  scratch.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const auto refused = [&](const char* file, const std::string& text) {
    scratch.write(file, text);
    EXPECT_THROW(load_wordpiece(scratch.path()), ForeignFile) << text;
    fs::remove(scratch.path() / file);
  };
  refused("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  refused("tokenizer_config.json", R"({"do_lower_case": false, "word_tokenizer_type": "mecab"})");
  refused("tokenizer_config.json", R"({"subword_tokenizer_type": "character"})");
  refused("config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  scratch.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  scratch.write("config.json", R"({"model_type": "bert"})");
  EXPECT_EQ(load_wordpiece(scratch.path()).encode("a"), (std::vector<std::int32_t>{2, 4, 3}));
}

// A cache that has lost its contents: with the defaults in place of a file, a cased text would be read as
// another.
TEST(WordPieceFiles, LinksThatLeadNowhereAreRefused) {
  const test::ScratchFolder scratch;
  scratch.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  for (const std::string name : {"config.json", "tokenizer_config.json", "tokenizer.json"}) {
    fs::create_symlink("../blobs/absent", scratch.path() / name);
    try {
      load_wordpiece(scratch.path());
      ADD_FAILURE() << name << " was left out in silence";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name + ": is a link to ../blobs/absent"), std::string::npos)
          << error.what();
    }
    fs::remove(scratch.path() / name);
  }
}

} // namespace
} // namespace hydrascope
