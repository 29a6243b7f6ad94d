// BERT's text normaliser and pre-tokenizer, as in Hugging Face's tokenizers library (BertNormalizer,
// BertPreTokenizer).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text.h"

namespace hydrascope {

struct NormalizerOptions {
  bool clean_text = true;           // control characters go, white space becomes spaces
  bool handle_chinese_chars = true; // ideographs become words of their own
  bool strip_accents = true;        // canonical decomposition without nonspacing marks
  bool lowercase = true;
};

// Invalid UTF-8 counts as U+FFFD, which clean_text drops.
std::string normalize_text(std::string_view text, const NormalizerOptions& options);

// Normalised text cut at white space and around each punctuation character. The views point into `text`.
std::vector<std::string_view> split_words(std::string_view text);

} // namespace hydrascope
