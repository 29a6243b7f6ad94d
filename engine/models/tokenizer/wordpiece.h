// BERT's WordPiece tokenizer: the token ids that Hugging Face's tokenizers gives for the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/models/tokenizer/special_tokens.h"
#include "engine/models/tokenizer/text_normalizer.h"

namespace hydrascope {

struct WordPieceToken {
  std::int32_t id = 0;
  int word = -1; // index of the word (as split_words gives them) it belongs to, −1 for special tokens

  bool operator==(const WordPieceToken&) const = default;
};

struct WordPieceSettings {
  std::vector<std::string> vocabulary; // by id; unused ids are empty
  std::vector<SpecialToken> special;
  NormalizerOptions normalizer;
  std::string unknown = "[UNK]", start = "[CLS]", end = "[SEP]"; // must be in the vocabulary
  std::string continuation = "##";
  std::size_t longest_word = 100; // in characters; longer words are unknown
};

class WordPiece {
public:
  // Throws BrokenFile naming `subject` if unknown, start or end is not in the vocabulary.
  WordPiece(WordPieceSettings settings, const std::string& subject);
  // Moved only: the tables hold views into the vocabulary.
  WordPiece(WordPiece&&) = default;
  WordPiece& operator=(WordPiece&&) = default;

  // The pieces of one text, without [CLS] and [SEP]; words are counted from `first_word`.
  std::vector<WordPieceToken> pieces(std::string_view text, int first_word = 0) const;
  // [CLS] text [SEP], or [CLS] text [SEP] second [SEP].
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::vector<std::int32_t> encode(std::string_view text, std::string_view second) const;

  std::int32_t start() const { return start_; }
  std::int32_t end() const { return end_; }
  std::int32_t largest_id() const { return static_cast<std::int32_t>(settings_.vocabulary.size()) - 1; }
  const std::string& token(std::int32_t id) const {
    return settings_.vocabulary.at(static_cast<std::size_t>(id));
  }

private:
  struct Output;
  std::int32_t require(const std::string& token, const std::string& subject) const;
  void add_text(std::string_view text, Output& output) const;
  void add_normalized(std::string_view text, Output& output) const;
  void add_words(std::string_view text, Output& output) const;
  void add_word(std::string_view word, Output& output) const;

  WordPieceSettings settings_;
  SpecialTokenMatcher literal_, normalized_;
  std::unordered_map<std::string_view, std::int32_t> ids_,
      continuation_ids_;          // views into settings_.vocabulary
  std::size_t longest_piece_ = 1; // bytes
  std::int32_t unknown_ = 0, start_ = 0, end_ = 0;
};

// Reads tokenizer.json where there is one, else vocab.txt with tokenizer_config.json. Truncation and padding
// are ignored. Throws Error (neither file), ForeignFile (not WordPiece), BrokenFile.
WordPieceSettings read_wordpiece_settings(const std::filesystem::path& folder);
WordPiece load_wordpiece(const std::filesystem::path& folder);

} // namespace hydrascope
