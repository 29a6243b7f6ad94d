// Files of byte-pair tokenizers: the older form, which tokens begin and end a text, and clean errors for bad
// ones.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/tokenizer/byte_pair.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path golden = test::source_folder() / "tests" / "golden" / "byte_pair";

std::vector<std::int32_t> ids_of(const BytePair& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const BytePairToken& token : tokenizer.encode(text)) ids.push_back(token.id);
  return ids;
}

// A tokenizer of three letters and what they merge to.
json small() {
  return json::parse(R"({"added_tokens": [{"id": 5, "content": "<s>", "special": true}], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
    "post_processor": null, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
    "merges": ["a b", ["ab", "c"]]}})");
}

// What loading the settings says.
template <typename Kind>
std::string complaint(const json& settings) {
  const test::ScratchFolder folder;
  folder.write("tokenizer.json", settings.dump());
  try {
    load_byte_pair(folder.path());
  } catch (const Kind& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, HasSubstr(folder.path().string()));
    EXPECT_THAT(message, HasSubstr("; ")); // a remedy
    return message;
  }
  return "no such error";
}
std::string broken(const json& settings) { return complaint<BrokenFile>(settings); }
std::string foreign(const json& patch) {
  json settings = small();
  settings.merge_patch(patch);
  return complaint<ForeignFile>(settings);
}

TEST(BytePairFiles, ASmallTokenizer) {
  const test::ScratchFolder folder;
  folder.write("tokenizer.json", small().dump());
  const BytePair tokenizer = load_byte_pair(folder.path());
  EXPECT_EQ(ids_of(tokenizer, "abcab<s>cb"), (std::vector<std::int32_t>{4, 3, 5, 2, 1}));
  EXPECT_EQ(ids_of(tokenizer, "axb"), (std::vector<std::int32_t>{3})); // unknown bytes are left out
  EXPECT_EQ(tokenizer.largest_id(), 5);
  EXPECT_TRUE(tokenizer.special(5));
  EXPECT_FALSE(tokenizer.special(4));
  EXPECT_FALSE(tokenizer.begin());
  EXPECT_FALSE(tokenizer.end());
  EXPECT_TRUE(has_byte_pair(folder.path()));
  EXPECT_FALSE(has_byte_pair(test::source_folder() / "tests" / "golden" / "wordpiece" / "cased"));
}

TEST(BytePairFiles, TokensThatBeginAndEndATextComeFromAllFiles) {
  const test::ScratchFolder folder;
  folder.write("tokenizer.json", small().dump());
  folder.write("config.json", R"({"bos_token_id": 1, "eos_token_id": 2})");
  EXPECT_EQ(load_byte_pair(folder.path()).begin(), 1);
  EXPECT_EQ(load_byte_pair(folder.path()).ends(), (std::vector<std::int32_t>{2}));
  // Ids that the tokenizer lacks are of no use.
  folder.write("generation_config.json", R"({"eos_token_id": [3, 50256, 2]})");
  EXPECT_EQ(load_byte_pair(folder.path()).ends(), (std::vector<std::int32_t>{3, 2}));
  folder.write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "<s>"})");
  EXPECT_EQ(load_byte_pair(folder.path()).begin(), 5);
  EXPECT_EQ(load_byte_pair(folder.path()).end(), 5);
  EXPECT_EQ(load_byte_pair(folder.path()).ends(), (std::vector<std::int32_t>{5, 3, 2}));
  folder.write("generation_config.json", R"({"eos_token_id": "x"})");
  EXPECT_THROW(load_byte_pair(folder.path()), BrokenFile);
}

TEST(BytePairFiles, TheOlderFormIsReadAlike) {
  const json settings = json::parse(read_text_file(golden / "gpt2" / "tokenizer.json"));
  const test::ScratchFolder folder;
  folder.write("vocab.json", settings["model"]["vocab"].dump());
  std::string merges = "#version: 0.2\n";
  for (const json& merge : settings["model"]["merges"]) merges += merge.get<std::string>() + "\n";
  folder.write("merges.txt", merges);
  EXPECT_TRUE(has_byte_pair(folder.path()));
  const BytePair tokenizer = load_byte_pair(folder.path());
  for (const json& one : json::parse(read_text_file(golden / "explicit.json")))
    EXPECT_EQ(ids_of(tokenizer, one["text"].get<std::string>()),
              one["gpt2"].get<std::vector<std::int32_t>>());
  EXPECT_TRUE(tokenizer.special(0));

  folder.write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true,
    "add_bos_token": true, "bos_token": "<|endoftext|>",
    "added_tokens_decoder": {"0": {"content": "<|endoftext|>", "special": true}, "620": {"content": "<new>"}}})");
  const BytePair configured = load_byte_pair(folder.path());
  EXPECT_EQ(configured.encode("the<new>").size(), 3U);
  EXPECT_EQ(ids_of(configured, "the<new>"), ids_of(configured, " the<new>"));
  EXPECT_EQ(configured.encode("the").front().id, 0);
  EXPECT_EQ(configured.begin(), 0);
  EXPECT_FALSE(configured.special(620));

  const auto around = [&](const char* config) {
    folder.write("tokenizer_config.json", config);
    return ids_of(load_byte_pair(folder.path()), "the cat");
  };
  using Ids = std::vector<std::int32_t>; // transformers'
  EXPECT_EQ(around("{}"), (Ids{349, 279, 309}));
  EXPECT_EQ(around(R"({"add_eos_token": true})"), (Ids{349, 279, 309, 0}));
  EXPECT_EQ(around(R"({"add_bos_token": true, "add_eos_token": true, "eos_token": "the"})"),
            (Ids{0, 349, 279, 309, 349}));
  EXPECT_EQ(around(R"({"add_bos_token": true, "bos_token": null})"), (Ids{349, 279, 309}));

  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  EXPECT_THROW(load_byte_pair(folder.path()), ForeignFile);
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<new>"}}})");
  EXPECT_THROW(load_byte_pair(folder.path()), BrokenFile);
  fs::remove(folder.path() / "tokenizer_config.json");
  folder.write("merges.txt", "#version: 0.2\nt h e\n");
  EXPECT_THROW(load_byte_pair(folder.path()), BrokenFile);
  fs::remove(folder.path() / "merges.txt");
  EXPECT_THROW(load_byte_pair(folder.path()), Error);
}

// transformers 5 leaves add_bos_token and add_eos_token unread, whatever the class, where there is a
// tokenizer.json.
TEST(BytePairFiles, TokenizerJsonAloneSaysWhatIsPutAroundAText) {
  for (const auto& [name, expected] :
       {std::pair{"llama3", std::vector<std::int32_t>{602, 348, 278, 308}}, {"gpt2", {349, 279, 309}}}) {
    const test::ScratchFolder folder;
    fs::copy_file(golden / name / "tokenizer.json", folder.path() / "tokenizer.json");
    const auto ids = [&](const char* config) {
      folder.write("tokenizer_config.json", config);
      return ids_of(load_byte_pair(folder.path()), "the cat");
    };
    EXPECT_EQ(ids("{}"), expected);
    for (const char* kind : {"LlamaTokenizerFast", "Qwen2Tokenizer", "GPT2Tokenizer"}) {
      const json config = {{"tokenizer_class", kind}, {"bos_token", "a"}, {"eos_token", "a"}};
      for (const bool added : {false, true}) {
        json with = config;
        with["add_bos_token"] = with["add_eos_token"] = added;
        EXPECT_EQ(ids(with.dump().c_str()), expected) << kind;
      }
    }
  }
}

TEST(BytePairFiles, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(foreign({{"model", {{"type", "WordPiece"}}}}), HasSubstr("WordPiece"));
  EXPECT_THAT(foreign({{"model", {{"byte_fallback", true}}}}), HasSubstr("byte_fallback"));
  EXPECT_THAT(foreign({{"model", {{"dropout", 0.1}}}}), HasSubstr("dropout"));
  EXPECT_THAT(foreign({{"model", {{"end_of_word_suffix", "</w>"}}}}), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(foreign({{"normalizer", {{"type", "Lowercase"}}}}), HasSubstr("Lowercase"));
  EXPECT_THAT(foreign({{"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}}}}),
              HasSubstr("NFKC"));
  EXPECT_THAT(foreign({{"pre_tokenizer", {{"type", "Metaspace"}}}}), HasSubstr("Metaspace"));
  EXPECT_THAT(foreign({{"pre_tokenizer", {{"type", "Digits"}}}}), HasSubstr("ByteLevel"));
  EXPECT_THAT(foreign({{"pre_tokenizer", nullptr}}), HasSubstr("ByteLevel"));
  EXPECT_THAT(foreign({{"decoder", {{"type", "Metaspace"}}}}), HasSubstr("Metaspace"));
  EXPECT_THAT(foreign({{"decoder", nullptr}}), HasSubstr("missing"));
  EXPECT_THAT(foreign({{"post_processor", {{"type", "RobertaProcessing"}}}}), HasSubstr("RobertaProcessing"));
}

// Patterns that Oniguruma and PCRE2 read differently.
TEST(BytePairFiles, PatternsThatMeanSomethingElseHereAreRefused) {
  const auto with_pattern = [](const std::string& pattern) {
    json settings = small();
    const json step = {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
    settings["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, settings["pre_tokenizer"]}}};
    return settings;
  };
  for (const char* pattern :
       {R"(\w+)",  R"(\bx)",      R"(\h)",   R"(\p{Han}+)", R"(\p{Greek)", R"(\pL)",   R"(\1)",   "^a",
        "a$",      "[[:alpha:]]", "[a[b]]",  "[a&&b]",      "[]a]",        "(?i)a",    "(?<n>a)", "(?m:a)",
        "(*UTF)a", "a{2}?",       "a{1,3}+", "a{,3}",       "{",           R"(\u0041)"}) {
    const std::string message = complaint<ForeignFile>(with_pattern(pattern));
    EXPECT_THAT(message, HasSubstr(std::string("'") + pattern + "'"));
    EXPECT_THAT(message, HasSubstr("uses "));
  }
  for (const char* pattern : {"(a", "a)", "[a", "a\\", "(?<=a+)b", "+"})
    EXPECT_THAT(broken(with_pattern(pattern)), HasSubstr(pattern));
  for (const char* pattern :
       {"a{2,3}", "a{2,}?", "a++b?+", R"([\p{L}\P{^Nd}\]\[^-]*)", R"((?>a)(?!b)(?<!c)\.\d\S)", "a}"})
    EXPECT_EQ(broken(with_pattern(pattern)), "no such error") << pattern;
  // A pattern that backtracks without end gives up.
  const test::ScratchFolder folder;
  folder.write("tokenizer.json", with_pattern("(?:(?:a|a)+b?)+[cd]").dump());
  const BytePair tokenizer = load_byte_pair(folder.path());
  EXPECT_THROW(tokenizer.encode(std::string(200, 'a')), Error);
}

TEST(BytePairFiles, DamagedVocabulariesAndMerges) {
  const auto changed = [](const json& patch) {
    json settings = small();
    settings.merge_patch(patch);
    return broken(settings);
  };
  EXPECT_THAT(changed({{"model", {{"merges", {"a x"}}}}}), HasSubstr("'x'"));
  EXPECT_THAT(changed({{"model", {{"merges", {"a c"}}}}}), HasSubstr("'ac'"));
  EXPECT_THAT(changed({{"model", {{"merges", {"ab"}}}}}), HasSubstr("'ab'"));
  EXPECT_THAT(changed({{"model", {{"merges", {"a  b"}}}}}), HasSubstr("'a  b'"));
  EXPECT_THAT(changed({{"model", {{"merges", {1}}}}}), HasSubstr("merge"));
  EXPECT_THAT(changed({{"model", {{"merges", "a b"}}}}), HasSubstr("merges"));
  EXPECT_THAT(changed({{"model", {{"merges", nullptr}}}}), HasSubstr("merges"));
  EXPECT_THAT(changed({{"model", {{"vocab", nullptr}}}}), HasSubstr("vocab"));
  EXPECT_THAT(changed({{"model", {{"vocab", {"a"}}}}}), HasSubstr("vocabulary"));
  EXPECT_THAT(changed({{"model", {{"vocab", {{"b", 0}}}}}}),
              HasSubstr("gives the id 0 to two tokens, 'a' and 'b'"));
  EXPECT_THAT(changed({{"model", {{"vocab", {{"d", 7}}}}}}), HasSubstr("none with the id 6"));
  EXPECT_THAT(changed({{"model", {{"vocab", {{"d", 3'999'999}}}}}}), HasSubstr("none with the id 6"));
  for (const json& id : {json(-1), json(1.5), json("0"), json(4'000'000), json(1e30), json(nullptr)}) {
    json settings = small();
    settings["model"]["vocab"]["d"] = id;
    EXPECT_THAT(broken(settings), HasSubstr("'d'"));
  }
  EXPECT_THAT(changed({{"model", {{"unk_token", "<unk>"}}}}), HasSubstr("<unk>"));
  EXPECT_THAT(changed({{"added_tokens", {{{"id", 5}, {"content", "a"}}}}}), HasSubstr("the ids 0 and 5"));
  EXPECT_THAT(changed({{"added_tokens", {{{"id", 5}, {"content", ""}}}}}), HasSubstr("empty"));
  EXPECT_THAT(changed({{"added_tokens", {{{"id", -5}, {"content", "<s>"}}}}}), HasSubstr("-5"));
  EXPECT_THAT(changed({{"added_tokens", {"<s>"}}}), HasSubstr("added_tokens"));
  EXPECT_THAT(changed({{"added_tokens", 3}}), HasSubstr("added_tokens"));
}

TEST(BytePairFiles, DamagedSteps) {
  const auto with_step = [](const json& step) {
    json settings = small();
    settings["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, settings["pre_tokenizer"]}}};
    return broken(settings);
  };
  EXPECT_THAT(with_step(3), HasSubstr("pretokenizers"));
  EXPECT_THAT(with_step({{"type", "Split"}, {"behavior", "Isolated"}}), HasSubstr("pattern"));
  EXPECT_THAT(with_step({{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}}),
              HasSubstr("pattern"));
  EXPECT_THAT(with_step({{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Merged"}}),
              HasSubstr("'Merged'"));
  const auto with_template = [](const json& single, const json& tokens) {
    json settings = small();
    settings["post_processor"] = {
        {"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", tokens}};
    return broken(settings);
  };
  const json text = {{"Sequence", {{"id", "A"}}}}, begin = {{"SpecialToken", {{"id", "<s>"}}}};
  EXPECT_EQ(with_template({begin, text}, {{"<s>", {{"ids", {5}}}}}), "no such error");
  EXPECT_THAT(with_template(json::array({begin}), {{"<s>", {{"ids", {5}}}}}), HasSubstr("0 times"));
  EXPECT_THAT(with_template({text, text}, json::object()), HasSubstr("2 times"));
  EXPECT_THAT(with_template({begin, text}, {{"<s>", {{"ids", {6}}}}}), HasSubstr("'<s>'"));
  EXPECT_THAT(with_template({begin, text}, json::object()), HasSubstr("'<s>'"));
  EXPECT_THAT(with_template("A", json::object()), HasSubstr("single"));
}

TEST(BytePairFiles, Garbage) {
  const test::ScratchFolder folder;
  const auto expect_broken = [&](const std::string& text) {
    folder.write("tokenizer.json", text);
    EXPECT_THROW(load_byte_pair(folder.path()), BrokenFile) << text.substr(0, 40);
  };
  const std::string good = small().dump();
  expect_broken("");
  expect_broken(good.substr(0, good.size() / 2));
  expect_broken("[]");
  expect_broken(std::string(1000, '\0'));
  expect_broken("{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"\xFF\xFE\": 0}}}"); // no UTF-8
  expect_broken("{\"pre_tokenizer\": " + std::string(50'000'000, '['));
  std::string nested = R"({"type": "ByteLevel"})";
  for (int i = 0; i < 200; ++i) nested.insert(0, R"({"type": "Sequence", "pretokenizers": [)").append("]}");
  json settings = small();
  settings["pre_tokenizer"] = json::parse(nested);
  expect_broken(settings.dump());
  std::string noise(100'000'000, ' ');
  std::uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  expect_broken("{" + noise);
  fs::resize_file(folder.path() / "tokenizer.json", 300'000'000);
  EXPECT_THROW(load_byte_pair(folder.path()), BrokenFile); // refused for its size
}

// Each of these files is either read or refused: nothing else happens, which sanitizers watch.
TEST(BytePairFiles, EveryByteThatIsLostOrTurnedIsSurvived) {
  const test::ScratchFolder folder;
  const std::string good = small().dump();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const std::string& text :
         {good.substr(0, i), std::string(good).erase(i, 1), std::string(good).replace(i, 1, "9"),
          std::string(good).replace(i, 1, "\"")}) {
      folder.write("tokenizer.json", text);
      try {
        load_byte_pair(folder.path()).encode("abc <s> abcab");
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("; "));
      }
    }
  }
}

} // namespace
} // namespace hydrascope
