// ROUGE (Lin 2004): how much of a reference text an answer has in common with it, by words and by order.
// Plain header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// F1 of single words, of pairs of words, and of the longest common subsequence; 0 to 1.
struct Rouge {
  double rouge1 = 0, rouge2 = 0, rougeL = 0;
};

// Lower-case runs of ASCII letters and digits, as the usual implementation has them without stemming.
std::vector<std::string> rouge_words(std::string_view text);

// Time O(words²) for the subsequence.
Rouge rouge(std::string_view answer, std::string_view reference);

} // namespace hydrascope
