#include "engine/models/tokenizer/special_tokens.h"

#include <algorithm>
#include <utility>

#include <utf8proc.h>

#include "engine/base/text.h"
#include "engine/models/tokenizer/text_normalizer.h"

namespace hydrascope {
namespace {

// Approximately what a regular expression's \w matches, for `single_word`.
bool is_word_character(char32_t point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(point));
  return point == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND);
}

// The code point that ends before `at`.
CodePoint code_point_before(std::string_view text, std::size_t at) {
  std::size_t start = at - 1;
  while (start > 0 && at - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  const CodePoint point = code_point_at(text, start);
  return start + point.length == at ? point : CodePoint{0xFFFD, 1};
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word_character(code_point_before(text, begin).value)) return false;
  return end >= text.size() || !is_word_character(code_point_at(text, end).value);
}

} // namespace

SpecialTokenMatcher::SpecialTokenMatcher(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const SpecialToken& token) { return token.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() > b.text.size();
  });
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    by_first_byte_[static_cast<unsigned char>(tokens_[i].text.front())].push_back(i);
}

const SpecialToken* SpecialTokenMatcher::longest_at(std::string_view text, std::size_t at) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])])
    if (text.substr(at).starts_with(tokens_[i].text)) return &tokens_[i];
  return nullptr;
}

std::optional<SpecialMatch> SpecialTokenMatcher::find(std::string_view text, std::size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    const SpecialToken* const token = longest_at(text, at);
    if (token == nullptr) continue;
    SpecialMatch match{token->id, at, at + token->text.size()};
    if (token->single_word && !stands_alone(text, match.begin, match.end)) {
      at = match.end - 1; // as in the library, no shorter token is tried within it
      continue;
    }
    while (token->strip_left && match.begin > from) {
      const CodePoint point = code_point_before(text, match.begin);
      if (!is_white_space(point.value)) break;
      match.begin -= point.length;
    }
    while (token->strip_right && match.end < text.size()) {
      const CodePoint point = code_point_at(text, match.end);
      if (!is_white_space(point.value)) break;
      match.end += point.length;
    }
    return match;
  }
  return std::nullopt;
}

} // namespace hydrascope
