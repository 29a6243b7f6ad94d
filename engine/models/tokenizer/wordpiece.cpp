#include "engine/models/tokenizer/wordpiece.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <utf8proc.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

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

struct Match {
  const SpecialToken* token = nullptr;
  std::size_t begin = 0, end = 0; // including stripped white space
};

// The leftmost special token at or after `from`, the longest of those that start there.
std::optional<Match> find_special(std::string_view text, std::size_t from,
                                  std::span<const SpecialToken> tokens) {
  std::optional<Match> best;
  for (const SpecialToken& token : tokens) { // longest first
    for (std::size_t at = text.find(token.text, from); at != std::string_view::npos;
         at = text.find(token.text, at + 1)) {
      if (best && at >= best->begin) break;
      if (token.single_word && !stands_alone(text, at, at + token.text.size())) continue;
      best = Match{&token, at, at + token.text.size()};
      break;
    }
  }
  if (!best) return best;
  while (best->token->strip_left && best->begin > from) {
    const CodePoint point = code_point_before(text, best->begin);
    if (!is_white_space(point.value)) break;
    best->begin -= point.length;
  }
  while (best->token->strip_right && best->end < text.size()) {
    const CodePoint point = code_point_at(text, best->end);
    if (!is_white_space(point.value)) break;
    best->end += point.length;
  }
  return best;
}

void sort_longest_first(std::vector<SpecialToken>& tokens) {
  std::stable_sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() > b.text.size();
  });
}

} // namespace

struct WordPiece::Output {
  std::vector<WordPieceToken> tokens;
  int word = 0;
};

WordPiece::WordPiece(WordPieceSettings settings, const std::string& subject)
    : settings_(std::move(settings)) {
  const std::string& prefix = settings_.continuation;
  ids_.reserve(settings_.vocabulary.size());
  for (std::size_t i = 0; i < settings_.vocabulary.size(); ++i) {
    const std::string_view token = settings_.vocabulary[i];
    if (token.empty()) continue;
    longest_piece_ = std::max(longest_piece_, token.size());
    // Of equal lines, the last one is used.
    ids_[token] = static_cast<std::int32_t>(i);
    if (token.starts_with(prefix) && token.size() > prefix.size())
      continuation_ids_[token.substr(prefix.size())] = static_cast<std::int32_t>(i);
  }
  unknown_ = require(settings_.unknown, subject);
  start_ = require(settings_.start, subject);
  end_ = require(settings_.end, subject);
  for (SpecialToken token : settings_.special) {
    if (token.text.empty()) continue;
    if (token.normalized) {
      token.text = normalize_text(token.text, settings_.normalizer);
      if (!token.text.empty()) normalized_.push_back(token);
    } else {
      literal_.push_back(token);
    }
  }
  sort_longest_first(literal_);
  sort_longest_first(normalized_);
}

std::int32_t WordPiece::require(const std::string& token, const std::string& subject) const {
  const auto found = ids_.find(token);
  if (found == ids_.end())
    throw BrokenFile(subject, "the vocabulary has no " + token, "fetch the model's files again");
  return found->second;
}

void WordPiece::add_word(std::string_view word, Output& output) const {
  std::size_t characters = 0;
  for (const char c : word) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  const std::size_t before = output.tokens.size();
  bool known = characters <= settings_.longest_word;
  for (std::size_t at = 0; known && at < word.size();) {
    const auto& table = at == 0 ? ids_ : continuation_ids_;
    std::size_t length = std::min(word.size() - at, longest_piece_);
    for (known = false; length > 0; --length) {
      const auto found = table.find(word.substr(at, length));
      if (found == table.end()) continue;
      output.tokens.push_back({found->second, output.word});
      known = true;
      break;
    }
    at += length;
  }
  if (!known) {
    output.tokens.resize(before);
    output.tokens.push_back({unknown_, output.word});
  }
  ++output.word;
}

void WordPiece::add_words(std::string_view text, Output& output) const {
  for (const std::string_view word : split_words(text)) add_word(word, output);
}

void WordPiece::add_normalized(std::string_view text, Output& output) const {
  const std::string normal = normalize_text(text, settings_.normalizer);
  std::size_t at = 0;
  while (const auto match = find_special(normal, at, normalized_)) {
    add_words(std::string_view(normal).substr(at, match->begin - at), output);
    output.tokens.push_back({match->token->id, -1});
    at = match->end;
  }
  add_words(std::string_view(normal).substr(at), output);
}

void WordPiece::add_text(std::string_view text, Output& output) const {
  std::size_t at = 0;
  while (const auto match = find_special(text, at, literal_)) {
    add_normalized(text.substr(at, match->begin - at), output);
    output.tokens.push_back({match->token->id, -1});
    at = match->end;
  }
  add_normalized(text.substr(at), output);
}

std::vector<WordPieceToken> WordPiece::pieces(std::string_view text, int first_word) const {
  Output output;
  output.word = first_word;
  add_text(text, output);
  return std::move(output.tokens);
}

std::vector<std::int32_t> WordPiece::encode(std::string_view text) const {
  std::vector<std::int32_t> ids{start_};
  for (const WordPieceToken& token : pieces(text)) ids.push_back(token.id);
  ids.push_back(end_);
  return ids;
}

std::vector<std::int32_t> WordPiece::encode(std::string_view text, std::string_view second) const {
  std::vector<std::int32_t> ids = encode(text);
  for (const WordPieceToken& token : pieces(second)) ids.push_back(token.id);
  ids.push_back(end_);
  return ids;
}

} // namespace hydrascope
