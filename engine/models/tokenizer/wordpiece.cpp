#include "engine/models/tokenizer/wordpiece.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace hydrascope {

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
  std::vector<SpecialToken> literal, normalized;
  for (SpecialToken token : settings_.special) {
    if (token.normalized) token.text = normalize_text(token.text, settings_.normalizer);
    (token.normalized ? normalized : literal).push_back(std::move(token));
  }
  literal_ = SpecialTokenMatcher(std::move(literal));
  normalized_ = SpecialTokenMatcher(std::move(normalized));
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
  while (const auto match = normalized_.find(normal, at)) {
    add_words(std::string_view(normal).substr(at, match->begin - at), output);
    output.tokens.push_back({match->id, -1});
    at = match->end;
  }
  add_words(std::string_view(normal).substr(at), output);
}

void WordPiece::add_text(std::string_view text, Output& output) const {
  std::size_t at = 0;
  while (const auto match = literal_.find(text, at)) {
    add_normalized(text.substr(at, match->begin - at), output);
    output.tokens.push_back({match->id, -1});
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
