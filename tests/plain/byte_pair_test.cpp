// Byte-pair encoding against Hugging Face's tokenizers: generated lines, explicit cases, every code point,
// variants.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "tests/support/checkout.h"
#include "tests/support/line_generator.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path golden = test::source_folder() / "tests" / "golden" / "byte_pair";
const std::array<const char*, 3> names{"gpt2", "smollm2", "llama3"};
constexpr std::size_t lines_of_block = 10, step_of_variants = 5, points_of_block = 1024,
                      blocks_of_points = 0x40000 / points_of_block;

json golden_json(const fs::path& file) { return json::parse(read_text_file(golden / file)); }

std::vector<std::int32_t> ids_of(const BytePair& tokenizer, std::string_view text, bool special = true) {
  std::vector<std::int32_t> ids;
  for (const BytePairToken& token : tokenizer.encode(text, special)) ids.push_back(token.id);
  return ids;
}

// The explicit cases and the generated lines, as the golden files count them.
const std::vector<std::string>& all_lines() {
  static const std::vector<std::string> lines = [] {
    std::vector<std::string> texts;
    for (const json& one : golden_json("explicit.json")) texts.push_back(one["text"]);
    for (std::string& line : test::LineGenerator(golden / "generator.json").lines())
      texts.push_back(std::move(line));
    return texts;
  }();
  return lines;
}

void append_number(std::string& bytes, std::uint32_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void append_pieces(std::string& bytes, const PreTokenizer& splitter, std::string_view text) {
  for (const TextPiece& piece : splitter.split(text))
    append_number(bytes, static_cast<std::uint32_t>(piece.end - piece.begin + (piece.space ? 1 : 0)));
}

// A hash for each block of every `step`-th line: of ids, a mark and the sizes of pieces.
std::string answer_hashes(const fs::path& folder, std::size_t step = 1) {
  const BytePair tokenizer = load_byte_pair(folder);
  const PreTokenizer splitter(read_byte_pair_settings(folder).pre_tokenizer, "test");
  std::string hashes, block;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < all_lines().size(); i += step) {
    for (const std::int32_t id : ids_of(tokenizer, all_lines()[i]))
      append_number(block, static_cast<std::uint32_t>(id));
    append_number(block, 0xFFFFFFFFU);
    append_pieces(block, splitter, all_lines()[i]);
    if (++lines % lines_of_block != 0 && i + step < all_lines().size()) continue;
    append_number(hashes, test::fnv32(block));
    block.clear();
  }
  return hashes;
}

void expect_same_hashes(const std::string& found, const fs::path& file) {
  const std::string expected = read_text_file(file);
  ASSERT_EQ(found.size(), expected.size());
  int differing = 0;
  for (std::size_t i = 0; i < expected.size(); i += 4) {
    if (expected.compare(i, 4, found, i, 4) == 0 || ++differing > 3) continue;
    const std::size_t first = i / 4 * lines_of_block;
    for (std::size_t line = first; line < std::min(first + lines_of_block, all_lines().size()); ++line)
      ADD_FAILURE() << "one of: " << json(all_lines()[line]).dump();
  }
  EXPECT_EQ(differing, 0);
}

TEST(BytePairGolden, TheGeneratorMakesTheSameLines) {
  std::string whole;
  bool first = true;
  for (const std::string& line : test::LineGenerator(golden / "generator.json").lines()) {
    whole.append(first ? "" : "\n").append(line);
    first = false;
  }
  const json summary = golden_json("summary.json");
  EXPECT_EQ(whole.size(), summary["bytes"].get<std::size_t>());
  EXPECT_EQ(test::fnv64(whole), std::stoull(summary["fnv64"].get<std::string>(), nullptr, 16));
}

TEST(BytePairGolden, TenThousandLinesOfThreeTokenizers) {
  for (const char* name : names) {
    SCOPED_TRACE(name);
    expect_same_hashes(answer_hashes(golden / name), golden / name / "expected.fnv");
  }
}

TEST(BytePairGolden, TenThousandLinesWithTheBundledModel) {
  const fs::path folder = test::deps_folder() / "models" / "smollm2";
  if (!fs::exists(folder / "tokenizer.json")) GTEST_SKIP() << "set-up has not fetched " << folder;
  expect_same_hashes(answer_hashes(folder), golden / "bundled" / "expected.fnv");
}

TEST(BytePairGolden, OtherSettings) {
  const json summary = golden_json("summary.json");
  for (const json& variant : summary["variants"]) {
    const test::ScratchFolder folder;
    json settings = golden_json(fs::path(variant["of"].get<std::string>()) / "tokenizer.json");
    settings.merge_patch(variant["patch"]);
    folder.write("tokenizer.json", settings.dump());
    EXPECT_EQ(test::fnv64(answer_hashes(folder.path(), step_of_variants)),
              std::stoull(variant["fnv64"].get<std::string>(), nullptr, 16))
        << variant["of"] << " " << variant["patch"].dump();
  }
}

TEST(BytePairGolden, ExplicitCases) {
  for (const char* name : names) {
    const BytePair tokenizer = load_byte_pair(golden / name);
    for (const json& one : golden_json("explicit.json"))
      EXPECT_EQ(ids_of(tokenizer, one["text"].get<std::string>()), one[name].get<std::vector<std::int32_t>>())
          << name << " " << one["text"].dump();
  }
}

TEST(BytePairGolden, EveryCodePointIsClassedAsTheReferenceDoes) {
  for (const char* name : names) {
    const std::string expected = read_text_file(golden / name / "codepoints.fnv");
    const PreTokenizer splitter(read_byte_pair_settings(golden / name).pre_tokenizer, "test");
    ASSERT_EQ(expected.size(), 4 * blocks_of_points);
    for (std::uint32_t block = 0; block < blocks_of_points; ++block) {
      std::string text, data;
      for (std::uint32_t i = 0; i < points_of_block; ++i) {
        const char32_t point = block * static_cast<std::uint32_t>(points_of_block) + i;
        if (point >= 0xD800 && point < 0xE000) continue;
        std::string character;
        append_code_point(character, point);
        fmt::format_to(std::back_inserter(text), "a{0}1{0} {0}\n", character);
      }
      append_pieces(data, splitter, text);
      std::uint32_t hash = 0;
      std::memcpy(&hash, expected.data() + std::size_t{4} * block, 4);
      EXPECT_EQ(test::fnv32(data), hash) << name << ", block " << std::hex << block;
    }
  }
}

// Every token's range holds the token's own bytes, and together they are the text.
TEST(BytePair, RangesAndTextsGiveTheTextAgain) {
  for (const char* name : {"gpt2", "llama3"}) {
    const BytePair tokenizer = load_byte_pair(golden / name);
    for (std::size_t i = 0; i < 2000; ++i) {
      const std::string& text = all_lines()[i];
      TextStream stream(tokenizer, true);
      std::string joined;
      std::int64_t at = 0;
      for (const BytePairToken& token : tokenizer.encode(text, false)) {
        ASSERT_EQ(token.begin, at) << text;
        at = token.end;
        const std::string_view part = std::string_view(text).substr(
            static_cast<std::size_t>(token.begin), static_cast<std::size_t>(token.end - token.begin));
        EXPECT_EQ(part, tokenizer.bytes(token.id)) << text;
        joined += stream.put(token.id);
      }
      EXPECT_EQ(at, static_cast<std::int64_t>(text.size())) << text;
      EXPECT_EQ(joined + stream.finish(), text);
    }
  }
}

TEST(BytePair, AddedTokensHaveNoRange) {
  const BytePair tokenizer = load_byte_pair(golden / "llama3");
  const auto tokens = tokenizer.encode("the");
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0].begin, -1);
  EXPECT_EQ(tokens[0].end, -1);
  EXPECT_TRUE(tokenizer.special(tokens[0].id));
  EXPECT_EQ(tokens[1], (BytePairToken{tokens[1].id, 0, 3}));
  EXPECT_FALSE(tokenizer.special(tokens[1].id));
  EXPECT_EQ(tokenizer.encode("the", false).size(), 1U);
  // Named in the text, it has one.
  EXPECT_EQ(tokenizer.encode("a<|begin_of_text|>", false)[1], (BytePairToken{tokens[0].id, 1, 18}));
}

TEST(BytePair, StrippedWhiteSpaceBelongsToTheToken) {
  const BytePair tokenizer = load_byte_pair(golden / "smollm2");
  const auto tokens = tokenizer.encode("a \n<mask> b");
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(tokenizer.token(tokens[1].id), "<mask>");
  EXPECT_EQ(tokens[1].begin, 1);
  EXPECT_EQ(tokens[1].end, 9);
}

TEST(BytePair, WhatIsNoUtf8IsReadAsReplacements) {
  const BytePair tokenizer = load_byte_pair(golden / "gpt2");
  const std::string bytes = "a\xFF\xE2\x82 b\xC0\x80\xF0\x9F\x98";
  const std::string text =
      "a\uFFFD\uFFFD b\uFFFD\uFFFD\uFFFD"; // as Python's bytes.decode("utf-8", "replace")
  EXPECT_EQ(ids_of(tokenizer, bytes), ids_of(tokenizer, text));
  std::int64_t at = 0;
  std::vector<std::int64_t> ends;
  for (const BytePairToken& token : tokenizer.encode(bytes)) {
    EXPECT_EQ(token.begin, at);
    at = token.end;
    ends.push_back(at);
  }
  EXPECT_EQ(at, static_cast<std::int64_t>(bytes.size()));
  // The broken bytes stay together: no token ends within them.
  for (const std::int64_t within : {3, 9, 10})
    EXPECT_EQ(std::count(ends.begin(), ends.end(), within), 0) << within;
}

TEST(BytePair, ComposedCharactersKeepTheirPlaces) {
  const test::ScratchFolder folder;
  json settings = golden_json("gpt2/tokenizer.json");
  settings["normalizer"] = {{"type", "NFC"}};
  folder.write("tokenizer.json", settings.dump());
  const BytePair tokenizer = load_byte_pair(folder.path());
  const std::string apart = "the cafe\u0301s \u1112\u1161\u11AB x"; // composes to caf\u00E9s and one syllable
  EXPECT_EQ(ids_of(tokenizer, apart), ids_of(tokenizer, "the caf\u00E9s \uD55C x"));
  const auto tokens = tokenizer.encode(apart);
  EXPECT_EQ(tokens.front().begin, 0);
  EXPECT_EQ(tokens.back().end, static_cast<std::int64_t>(apart.size()));
  for (std::size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].begin, tokens[i - 1].end);
  for (const BytePairToken& token : tokens) {
    EXPECT_TRUE(token.end <= 7 || token.end >= 10) << token.end;  // e and its accent together
    EXPECT_TRUE(token.end <= 12 || token.end >= 21) << token.end; // so are the syllable's letters
  }
}

TEST(BytePair, LongTextsWithoutABoundary) {
  const BytePair tokenizer = load_byte_pair(golden / "gpt2");
  const auto tokens = tokenizer.encode(std::string(200'000, 'a'));
  EXPECT_EQ(tokens.back().end, 200'000);
  // The same merges as in a short text: pieces of the longest token of that letter.
  const auto few = tokenizer.encode(std::string(2'000, 'a'));
  EXPECT_EQ(tokens.front().id, few.front().id);
  EXPECT_EQ(tokens[1000].id, few[10].id);
  EXPECT_EQ(tokenizer.encode(std::string(300'000, ' ')).back().end, 300'000);
}

// The ids of Hugging Face's tokenizers 0.23: how many, and the hash of all.
struct LongText {
  const char* name;
  bool composed; // with the normalizer NFC
  const std::string* text;
  std::size_t tokens;
  std::uint32_t hash;
};

TEST(BytePair, TextsOfAMegabyteAreReadAsTheReferenceReadsThem) {
  std::string marks = "a", acutes = "a", line;
  for (int i = 0; i < 250'000; ++i) {
    marks += "\u0301\u0323"; // above and below the letter
    acutes += "\u0301\u0301";
    line += "the ";
  }
  const std::string word(1'000'000, 'a');
  for (const LongText& one : {LongText{"gpt2", false, &marks, 750'001, 0x141FC544},
                              LongText{"gpt2", false, &word, 125'000, 0x8CE40565},
                              LongText{"gpt2", false, &line, 250'001, 0x4100B126},
                              LongText{"gpt2", true, &acutes, 500'000, 0x0CD69308},
                              LongText{"gpt2", true, &marks, 750'000, 0xFF3F795E},
                              LongText{"smollm2", false, &marks, 500'001, 0x9F651C46},
                              LongText{"smollm2", false, &word, 125'000, 0xEA04FDC5},
                              LongText{"smollm2", false, &line, 250'001, 0xC21F2DB8},
                              LongText{"llama3", false, &marks, 750'001, 0xE005B235},
                              LongText{"llama3", false, &word, 125'000, 0x9E82CED5},
                              LongText{"llama3", false, &line, 250'001, 0x6D3A8797}}) {
    SCOPED_TRACE(fmt::format("{}, {} tokens", one.name, one.tokens));
    json settings = golden_json(fs::path(one.name) / "tokenizer.json");
    if (one.composed) settings["normalizer"] = {{"type", "NFC"}};
    const test::ScratchFolder folder;
    folder.write("tokenizer.json", settings.dump());
    const BytePair tokenizer = load_byte_pair(folder.path());
    std::string ids, bytes;
    for (const std::int32_t id : ids_of(tokenizer, *one.text, false)) {
      append_number(ids, static_cast<std::uint32_t>(id));
      bytes += tokenizer.bytes(id);
    }
    EXPECT_EQ(ids.size() / sizeof(std::uint32_t), one.tokens);
    EXPECT_EQ(test::fnv32(ids), one.hash);
    if (!one.composed) {
      EXPECT_TRUE(bytes == *one.text); // a failure does not print a megabyte
    }
  }
}

TEST(BytePair, TokensAreShownAsText) {
  const BytePair tokenizer = load_byte_pair(golden / "gpt2");
  const auto shown = [&](std::string_view text) {
    std::string result;
    for (const std::int32_t id : ids_of(tokenizer, text)) result += tokenizer.token(id) + "|";
    return result;
  };
  EXPECT_EQ(shown(" the"), " the|");
  EXPECT_EQ(shown("\n\t"), "\\n|\\t|");
  EXPECT_EQ(shown("\x01"), "<U+0001>|");
  EXPECT_EQ(shown("\u0411\u3042"), "<0xD0>|<0x91>|<0xE3><0x81>|<0x82>|"); // no token holds all of either
  EXPECT_EQ(shown("<|endoftext|>"), "<|endoftext|>|");
  EXPECT_EQ(tokenizer.token(tokenizer.largest_id() + 1), "<unused 620>");
  EXPECT_EQ(tokenizer.bytes(tokenizer.largest_id() + 1), "");
  EXPECT_EQ(tokenizer.bytes(-1), "");
}

TEST(TextStream, GivesWholeCharactersOnly) {
  const BytePair tokenizer = load_byte_pair(golden / "gpt2");
  std::array<int, 256> byte_ids{};
  for (int id = 0; id <= tokenizer.largest_id(); ++id)
    if (const std::string bytes = tokenizer.bytes(id); bytes.size() == 1)
      byte_ids[static_cast<unsigned char>(bytes.front())] = id;
  const auto put = [&](TextStream& stream, std::string_view bytes) {
    std::vector<std::string> parts;
    for (const char byte : bytes) parts.push_back(stream.put(byte_ids[static_cast<unsigned char>(byte)]));
    return parts;
  };
  using Parts = std::vector<std::string>;
  TextStream stream(tokenizer);
  EXPECT_EQ(put(stream, "a\u00E9\U0001F600"), (Parts{"a", "", "\u00E9", "", "", "", "\U0001F600"}));
  EXPECT_EQ(stream.finish(), "");
  // A byte that breaks a character off shows at once what can never become one.
  EXPECT_EQ(put(stream, "\xE2\x82x"), (Parts{"", "", "\uFFFDx"}));
  EXPECT_EQ(put(stream, "\xFF\xC0\x80"), (Parts{"\uFFFD", "\uFFFD", "\uFFFD"}));
  EXPECT_EQ(put(stream, "\xED\xA0"), (Parts{"", "\uFFFD\uFFFD"})); // a surrogate
  EXPECT_EQ(put(stream, "\xF0\x9F"), (Parts{"", ""}));
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  ASSERT_TRUE(tokenizer.special(0));
  EXPECT_EQ(stream.put(0), "");
  EXPECT_EQ(TextStream(tokenizer, true).put(0), "<|endoftext|>");
}

} // namespace
} // namespace hydrascope
