// From a text to a BERT's input: tokens, types, and the cut at the last position.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/models/tokenizer/wordpiece.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {

// Reads the folder's tokenizer at the first text: a model can be looked at without one. Safe to call from
// several threads.
class TextPreparer {
public:
  TextPreparer(std::filesystem::path folder, int vocabulary, int max_tokens);

  // token_ids, token_types (1,N); tokens; a note if the text was cut. Throws what load_wordpiece throws,
  // BrokenFile (the tokenizer's ids do not fit the model).
  ModelInput prepare(const std::string& text, const std::optional<std::string>& second) const;

private:
  const WordPiece& tokenizer() const;

  std::filesystem::path folder_;
  int vocabulary_, max_tokens_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const WordPiece> tokenizer_;
};

} // namespace hydrascope
