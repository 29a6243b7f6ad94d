// Byte-level byte-pair encoding (Sennrich et al. 2016, on bytes as in GPT-2, Radford et al. 2019): the token
// ids that Hugging Face's tokenizers gives for the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/models/tokenizer/pre_tokenizer.h"
#include "engine/models/tokenizer/special_tokens.h"

namespace hydrascope {

struct BytePairToken {
  std::int32_t id = 0;
  // The bytes [begin, end) of the text that the token stands for, its leading space included; −1 for a token
  // that encode() added. Tokens follow each other without a gap but for bytes that the vocabulary lacks. A
  // character that was replaced (no UTF-8, normalization) belongs whole to the first of its tokens; the
  // others are empty.
  std::int64_t begin = -1, end = -1;

  bool operator==(const BytePairToken&) const = default;
};

struct BytePairMerge {
  std::int32_t left = 0, right = 0, result = 0; // ids
};

struct BytePairSettings {
  struct Entry {
    std::string bytes;
    bool from_text = false; // can come about by merging; others only as added tokens
  };
  std::vector<Entry> vocabulary;     // by id
  std::vector<BytePairMerge> merges; // the first one is applied first
  std::vector<SpecialToken> added;
  std::vector<PreTokenizerStep> pre_tokenizer; // its last step is a ByteLevelStep
  std::optional<std::int32_t> unknown; // for bytes that the vocabulary lacks, which are left out otherwise
  bool fuse_unknown = false;           // one token for several of them in a row
  bool ignore_merges = false;          // a piece that is in the vocabulary is taken whole
  bool compose = false;                // normalization form C
  std::vector<std::int32_t> before, after; // what the post-processor adds
  std::optional<std::int32_t> begin;       // begin-of-text token
  std::vector<std::int32_t> ends;          // tokens that end a text, the tokenizer's own first
};

class BytePair {
public:
  // Throws what PreTokenizer throws, naming `subject`. The settings' ids must be in the vocabulary.
  BytePair(BytePairSettings settings, const std::string& subject);
  // Moved only: the table holds views into the vocabulary.
  BytePair(BytePair&&) = default;
  BytePair& operator=(BytePair&&) = default;

  // The tokens of a text; what is no UTF-8 is read as U+FFFD. Tokens named in the text become their ids.
  // `special`: with what the tokenizer's post-processor adds (Llama 3: its begin-of-text token). Throws Error
  // as RegularExpression::find_all.
  std::vector<BytePairToken> encode(std::string_view text, bool special = true) const;

  // The bytes of a token, which may be a part of a character; none for an id beyond the vocabulary.
  std::string bytes(int id) const;
  // A token's text for people: bytes that are no whole character as <0xE2>, a line feed, carriage return and
  // tab as \n, \r and \t, other characters without a glyph of their own as <U+200D>, and spaces as they are,
  // since a leading one tells a word's first token from the others.
  std::string token(int id) const;
  bool special(int id) const;
  int largest_id() const { return static_cast<int>(settings_.vocabulary.size()) - 1; }

  // The tokens that begin and end a text, where the model's files name them.
  std::optional<int> begin() const { return settings_.begin; }
  std::optional<int> end() const;
  // All that end a text: an instruction model has several.
  const std::vector<std::int32_t>& ends() const { return settings_.ends; }

private:
  struct Word;
  class Encoder;
  struct RankedMerge {
    std::int32_t rank = 0, result = 0;
  };
  const RankedMerge* merge_of(std::int32_t left, std::int32_t right) const;

  BytePairSettings settings_;
  PreTokenizer pre_tokenizer_;
  SpecialTokenMatcher literal_, normalized_;
  std::unordered_map<std::string_view, std::int32_t> ids_; // views into settings_.vocabulary
  std::unordered_map<std::uint64_t, RankedMerge> merges_;
  std::vector<bool> special_;
  std::vector<std::int32_t> byte_ids_; // 256, −1 for bytes that the vocabulary lacks
};

// Joins tokens to text one by one.
class TextStream {
public:
  // `special`: special tokens are written as their names, otherwise left out. The tokenizer must outlive it.
  explicit TextStream(const BytePair& tokenizer, bool special = false)
      : tokenizer_(&tokenizer), special_(special) {}

  // The characters that the token completes: empty if it ends within one. U+FFFD stands for bytes that can
  // never become one, as in Python's bytes.decode("utf-8", "replace") of all tokens' bytes.
  std::string put(int id);
  // What is left as U+FFFD, after the last token.
  std::string finish();

private:
  const BytePair* tokenizer_;
  bool special_;
  std::string pending_; // the bytes of a character that is not complete
};

// Whether the folder's tokenizer is byte-pair encoding: by tokenizer.json, or vocab.json and merges.txt.
// Throws Error, BrokenFile.
bool has_byte_pair(const std::filesystem::path& folder);

// Reads tokenizer.json where there is one, else vocab.json and merges.txt, which are read as GPT-2's; and
// which tokens begin and end a text, from tokenizer_config.json, generation_config.json and config.json.
// Truncation and padding are ignored, and beside tokenizer.json add_bos_token and add_eos_token, as by
// transformers 5. Throws Error (neither file), ForeignFile (another kind of tokenizer, or parts that are not
// supported), BrokenFile.
BytePairSettings read_byte_pair_settings(const std::filesystem::path& folder);
BytePair load_byte_pair(const std::filesystem::path& folder);

// The tokens before and after each text, as BERT reads it. Throws BrokenFile for a tokenizer that adds
// others.
std::pair<std::int32_t, std::int32_t> tokens_at_both_ends(const BytePair& tokens,
                                                          const std::filesystem::path& folder);

} // namespace hydrascope
