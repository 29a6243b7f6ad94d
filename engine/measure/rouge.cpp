#include "engine/measure/rouge.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace hydrascope {
namespace {

using Words = std::vector<std::string>;

double f1(const std::size_t common, const std::size_t of_answer, const std::size_t of_reference) {
  return common == 0 ? 0.0
                     : 2.0 * static_cast<double>(common) / static_cast<double>(of_answer + of_reference);
}

std::map<Words, std::size_t> runs_of(const Words& words, const std::size_t length) {
  std::map<Words, std::size_t> runs;
  for (std::size_t first = 0; first + length <= words.size(); ++first)
    ++runs[Words(words.begin() + static_cast<std::ptrdiff_t>(first),
                 words.begin() + static_cast<std::ptrdiff_t>(first + length))];
  return runs;
}

double overlap(const Words& answer, const Words& reference, const std::size_t length) {
  if (answer.size() < length || reference.size() < length) return 0;
  const auto of_answer = runs_of(answer, length), of_reference = runs_of(reference, length);
  std::size_t common = 0;
  for (const auto& [run, count] : of_answer)
    if (const auto found = of_reference.find(run); found != of_reference.end())
      common += std::min(count, found->second);
  return f1(common, answer.size() - length + 1, reference.size() - length + 1);
}

std::size_t longest_common_subsequence(const Words& left, const Words& right) {
  std::vector<std::size_t> before(right.size() + 1), now(right.size() + 1);
  for (const std::string& word : left) {
    for (std::size_t i = 0; i < right.size(); ++i)
      now[i + 1] = word == right[i] ? before[i] + 1 : std::max(before[i + 1], now[i]);
    std::swap(before, now);
  }
  return before.back();
}

} // namespace

std::vector<std::string> rouge_words(const std::string_view text) {
  Words words;
  bool open = false;
  for (const char given : text) {
    const char letter = given >= 'A' && given <= 'Z' ? static_cast<char>(given - 'A' + 'a') : given;
    const bool part = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (part && !open) words.emplace_back();
    if (part) words.back() += letter;
    open = part;
  }
  return words;
}

Rouge rouge(const std::string_view answer, const std::string_view reference) {
  const Words own = rouge_words(answer), expected = rouge_words(reference);
  return {overlap(own, expected, 1), overlap(own, expected, 2),
          f1(longest_common_subsequence(own, expected), own.size(), expected.size())};
}

} // namespace hydrascope
