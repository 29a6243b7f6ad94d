// Tokens that are matched in the text before it is split into words, as in Hugging Face's tokenizers library
// (AddedVocabulary).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

struct SpecialToken {
  std::string text;
  std::int32_t id = 0;
  bool single_word = false; // matches only between characters that are not part of a word
  bool strip_left = false;  // includes the white space before it
  bool strip_right = false; // … and after it
  bool normalized = false;  // matched in the normalised text
  bool special = false;     // marks a place rather than being text: left out of decoded text
};

struct SpecialMatch {
  std::int32_t id = 0;
  std::size_t begin = 0, end = 0; // bytes of the text, stripped white space included
};

class SpecialTokenMatcher {
public:
  SpecialTokenMatcher() = default;
  // Tokens with an empty text are left out.
  explicit SpecialTokenMatcher(std::vector<SpecialToken> tokens);

  // The leftmost token at or after byte `from`, the longest of those that start there. White space is
  // stripped no further left than `from`.
  std::optional<SpecialMatch> find(std::string_view text, std::size_t from) const;

private:
  const SpecialToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<SpecialToken> tokens_;                          // longest first
  std::array<std::vector<std::size_t>, 256> by_first_byte_{}; // indices into tokens_
};

} // namespace hydrascope
