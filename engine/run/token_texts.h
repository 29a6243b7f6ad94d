// Texts as token ids, and batches of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/models/transformer/model.h"

namespace hydrascope {

using TokenIds = std::vector<std::int64_t>; // with the special tokens at both ends

struct TokenTexts {
  std::vector<TokenIds> texts;
  std::int64_t cut = 0; // texts that lost tokens to the model's last position
};
TokenTexts tokenized(const Model& model, const std::vector<std::string>& texts);

// One long text out of many: the words of all, one after another, cut to pieces of `length` tokens (0: a
// single piece), each with its own first and last special token. The last piece may be shorter.
std::vector<TokenIds> joined_texts(const std::vector<TokenIds>& texts, std::int64_t length);

// Texts padded to the longest and masked; without a mask where all are of one length.
ModelInput text_batch(const std::vector<const TokenIds*>& texts);
// The same of texts as prepare_text gives them, which may be pairs: token types are kept.
ModelInput padded_batch(const std::vector<const ModelInput*>& texts);

} // namespace hydrascope
