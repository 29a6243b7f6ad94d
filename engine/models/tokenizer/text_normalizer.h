// BERT's text normaliser and pre-tokenizer, as in Hugging Face's tokenizers library (BertNormalizer,
// BertPreTokenizer).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// BERT's character classes, as of the Unicode version that Hugging Face's tokenizers library is built with.
// Newer tables would give other token ids.
bool is_removed(char32_t point);     // dropped by clean_text: control, format, private use, U+0000, U+FFFD
bool is_space(char32_t point);       // turned into a space by clean_text
bool is_white_space(char32_t point); // separates words: is_space(), vertical tab, form feed, next line
bool is_ideograph(char32_t point);   // made a word of its own by handle_chinese_chars
bool is_nonspacing(char32_t point);  // dropped by strip_accents after decomposition
bool is_punctuation(char32_t point); // a word of its own

struct NormalizerOptions {
  bool clean_text = true;           // drops control characters, turns white space into spaces
  bool handle_chinese_chars = true; // makes each ideograph a word of its own
  bool strip_accents = true;        // decomposes canonically and drops nonspacing marks
  bool lowercase = true;
};

// The normalised text as UTF-8. Invalid UTF-8 is read as U+FFFD, which clean_text drops.
std::string normalize_text(std::string_view text, const NormalizerOptions& options);

// The words of a normalised text: cut at white space and around each punctuation character. The views point
// into `text`.
std::vector<std::string_view> split_words(std::string_view text);

} // namespace hydrascope
