#include "engine/run/token_texts.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace hydrascope {

TokenTexts tokenized(const Model& model, const std::vector<std::string>& texts) {
  TokenTexts result;
  for (const std::string& text : texts) {
    const ModelInput input = model.prepare_text(text);
    const at::Tensor ids = input.token_ids.flatten().contiguous();
    const auto* const first = ids.const_data_ptr<std::int64_t>();
    result.texts.emplace_back(first, first + ids.numel());
    result.cut += input.note.empty() ? 0 : 1;
  }
  return result;
}

std::vector<TokenIds> joined_texts(const std::vector<TokenIds>& texts, std::int64_t length) {
  std::vector<TokenIds> pieces;
  if (texts.empty()) return pieces;
  const std::int64_t first = texts.front().front(), last = texts.front().back();
  TokenIds piece{first};
  const auto close = [&] {
    piece.push_back(last);
    pieces.push_back(std::exchange(piece, {first}));
  };
  for (const TokenIds& text : texts)
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      piece.push_back(text[i]);
      if (length > 0 && static_cast<std::int64_t>(piece.size()) + 1 >= length) close();
    }
  if (piece.size() > 1) close();
  return pieces;
}

namespace {

// (texts, longest) zeros, with a mask where the texts differ in length.
ModelInput empty_batch(std::int64_t texts, std::int64_t shortest, std::int64_t longest) {
  ModelInput input;
  input.token_ids = at::zeros({texts, longest}, at::kLong);
  input.token_types = at::zeros({texts, longest}, at::kLong);
  if (shortest < longest) input.mask = at::zeros({texts, longest}, at::kBool);
  return input;
}

} // namespace

ModelInput text_batch(const std::vector<const TokenIds*>& texts) {
  const auto [shortest, longest] =
      std::ranges::minmax(texts, {}, [](const TokenIds* text) { return text->size(); });
  const auto rows = static_cast<std::int64_t>(texts.size());
  ModelInput input = empty_batch(rows, static_cast<std::int64_t>(shortest->size()),
                                 static_cast<std::int64_t>(longest->size()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const TokenIds& text = *texts[static_cast<std::size_t>(row)];
    const auto count = static_cast<std::int64_t>(text.size());
    input.token_ids[row].slice(0, 0, count).copy_(at::tensor(text, at::kLong));
    if (input.mask.defined()) input.mask[row].slice(0, 0, count).fill_(true);
  }
  return input;
}

ModelInput padded_batch(const std::vector<const ModelInput*>& texts) {
  const auto [shortest, longest] =
      std::ranges::minmax(texts, {}, [](const ModelInput* text) { return text->token_ids.size(1); });
  const auto rows = static_cast<std::int64_t>(texts.size());
  ModelInput input = empty_batch(rows, shortest->token_ids.size(1), longest->token_ids.size(1));
  for (std::int64_t row = 0; row < rows; ++row) {
    const ModelInput& text = *texts[static_cast<std::size_t>(row)];
    const std::int64_t count = text.token_ids.size(1);
    input.token_ids[row].slice(0, 0, count).copy_(text.token_ids[0]);
    input.token_types[row].slice(0, 0, count).copy_(text.token_types[0]);
    if (input.mask.defined()) input.mask[row].slice(0, 0, count).fill_(true);
  }
  return input;
}

} // namespace hydrascope
