#include "engine/models/text/text_input.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

using Pieces = std::vector<WordPieceToken>;

// Takes tokens off the longer text's end until both fit, as transformers' longest_first does.
void cut(Pieces& first, Pieces& second, std::size_t room) {
  while (first.size() + second.size() > room) {
    if (first.size() > second.size())
      first.pop_back();
    else
      second.pop_back();
  }
}

} // namespace

TextPreparer::TextPreparer(std::filesystem::path folder, int vocabulary, int max_tokens)
    : folder_(std::move(folder)), vocabulary_(vocabulary), max_tokens_(max_tokens) {}

const WordPiece& TextPreparer::tokenizer() const {
  const std::lock_guard lock(mutex_);
  if (!tokenizer_) {
    auto loaded = std::make_unique<const WordPiece>(load_wordpiece(folder_));
    if (loaded->largest_id() >= vocabulary_)
      throw BrokenFile(folder_.string(),
                       fmt::format("its tokenizer has ids up to {}, but the model's vocabulary is {}",
                                   loaded->largest_id(), vocabulary_),
                       "see that tokenizer and weights belong together");
    tokenizer_ = std::move(loaded);
  }
  return *tokenizer_;
}

ModelInput TextPreparer::prepare(const std::string& text, const std::optional<std::string>& second) const {
  const WordPiece& wordpiece = tokenizer();
  Pieces first = wordpiece.pieces(text);
  const int words =
      first.empty()
          ? 0
          : std::max(0, 1 + std::max_element(first.begin(), first.end(), [](const auto& a, const auto& b) {
                              return a.word < b.word;
                            })->word);
  Pieces other = second ? wordpiece.pieces(*second, words) : Pieces();
  const std::size_t special = second ? 3 : 2;
  const std::size_t all = first.size() + other.size() + special;
  const auto limit = static_cast<std::size_t>(max_tokens_);
  if (limit < special) throw UsageError(folder_.string(), "its model has too few positions for a text");

  ModelInput input;
  if (all > limit) {
    cut(first, other, limit - special);
    input.note = fmt::format("text cut at {} of {} tokens", limit, all);
  }
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> types;
  const auto add = [&](const WordPieceToken& token, std::int64_t type) {
    ids.push_back(token.id);
    types.push_back(type);
    input.tokens.push_back({wordpiece.token(token.id), token.word, token.word < 0});
  };
  add({wordpiece.start(), -1}, 0);
  for (const WordPieceToken& token : first) add(token, 0);
  add({wordpiece.end(), -1}, 0);
  for (const WordPieceToken& token : other) add(token, 1);
  if (second) add({wordpiece.end(), -1}, 1);

  const auto count = static_cast<std::int64_t>(ids.size());
  input.token_ids = at::empty({1, count}, at::kLong);
  input.token_types = at::empty({1, count}, at::kLong);
  std::copy(ids.begin(), ids.end(), input.token_ids.mutable_data_ptr<std::int64_t>());
  std::copy(types.begin(), types.end(), input.token_types.mutable_data_ptr<std::int64_t>());
  return input;
}

} // namespace hydrascope
