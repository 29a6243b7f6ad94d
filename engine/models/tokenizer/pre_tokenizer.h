// Cuts a text into the pieces that byte-pair encoding joins bytes within, as the pre-tokenizers of Hugging
// Face's tokenizers library do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/models/tokenizer/regular_expression.h"

namespace hydrascope {

// Makes each digit, or each run of digits, a piece. A digit is any character of category N.
struct DigitsStep {
  bool individual = false;
};

// What becomes of the places that a pattern matches: a piece of their own, left out, joined to the piece
// before or behind, or joined with matches beside them.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct PatternStep {
  std::string pattern; // a regular expression
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false; // the pattern names what lies between
};

// The last step of byte-level tokenizers. The pattern is that of GPT-2 (Radford et al. 2019): contractions,
// words, numbers and other characters, each with the space before it.
struct ByteLevelStep {
  bool add_prefix_space = false; // before each piece that has none
  bool use_regex = true;
};

using PreTokenizerStep = std::variant<DigitsStep, PatternStep, ByteLevelStep>;

struct TextPiece {
  std::size_t begin = 0, end = 0; // bytes
  bool space = false;             // a space that the text lacks is to be read before it

  bool operator==(const TextPiece&) const = default;
};

class PreTokenizer {
public:
  PreTokenizer() = default;
  // Throws what RegularExpression throws, naming `subject`. ByteLevelStep must be the last step.
  PreTokenizer(const std::vector<PreTokenizerStep>& steps, const std::string& subject);

  // The pieces of valid UTF-8 from left to right; none is empty but for its space. Throws Error as
  // RegularExpression::find_all.
  std::vector<TextPiece> split(std::string_view text) const;

private:
  struct Step {
    PreTokenizerStep settings;
    std::optional<RegularExpression> pattern;
  };
  static void split_piece(const Step& step, std::string_view text, TextPiece piece,
                          std::vector<TextPiece>& out);

  std::vector<Step> steps_;
};

} // namespace hydrascope
