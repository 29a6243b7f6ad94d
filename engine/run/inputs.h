// Inputs of models: the picture or text of a run, and files of texts and pictures for measuring and training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

struct PreparedInput {
  ModelInput input;
  std::string key; // equal for equal inputs
  std::int64_t tokens = 0;
};

// Prepares inputs and keeps the last few resized pictures.
class InputPreparer {
public:
  // A capture has one input, whatever is given. Throws UsageError for a picture given to a text model or a
  // text given to a vision model, and as Model::prepare_image and prepare_text.
  PreparedInput prepare(const AppliedModel& model, const RunInput& input, std::optional<int> image_size);

private:
  const std::string& hash_of(const std::shared_ptr<const Image>& image);

  std::vector<std::pair<std::weak_ptr<const Image>, std::string>> image_hashes_;
  std::vector<PreparedInput> images_; // resized ones, most recent last
};

// The input with these tokens hidden by Model::with_hidden, whose errors it throws.
PreparedInput with_hidden_tokens(const Model& model, PreparedInput whole,
                                 const std::vector<std::int64_t>& tokens);

// The tokens as users see them: word pieces, "[class]", "row 3, column 4" (from 1).
std::vector<TokenInfo> token_infos(const ModelInfo& model, const ModelInput& input);

// The texts of a file: one per line, or with `column` > 0 that column of tab-separated lines (no quoting).
// Skips a byte-order mark and empty texts, with `header` also the first line; `limit` > 0 returns the first
// `limit` texts. Throws Error (missing file, a line without that column).
std::vector<std::string> read_texts(const std::filesystem::path& file, int column, bool header, int limit);

// A text, and the second one of a pair.
struct TextOrPair {
  std::string text;
  std::optional<std::string> second;
};
// The same with second texts from column `pair_column`, 0: none. Throws UsageError, too (a column of second
// texts that is none of pairs).
std::vector<TextOrPair> read_pairs(const std::filesystem::path& file, int column, int pair_column,
                                   bool header, int limit);

// All files below a folder, whatever their type, sorted by path. `limit` > 0 returns that many, evenly
// spaced, because folders are often sorted by class. Throws Error (no such folder).
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, int limit);

using TokenIds = std::vector<std::int64_t>; // with the special tokens at both ends

// Throws UsageError unless `pair_column` is 0 or another column than `column`, which is given then.
void check_pair_column(int column, int pair_column);

struct TokenizedTexts {
  std::vector<ModelInput> texts; // B = 1 each, without their tokens' texts
  std::int64_t cut = 0;          // number of texts longer than the model's position table
};
TokenizedTexts tokenized(const Model& model, const std::vector<TextOrPair>& texts);

// The token ids of texts (B = 1 each).
std::vector<TokenIds> token_ids_of(const std::vector<ModelInput>& texts);

// The texts concatenated and cut into pieces of `length` tokens (0: one piece), each with its own first and
// last special token. The last piece may be shorter.
std::vector<TokenIds> joined_texts(const std::vector<TokenIds>& texts, std::int64_t length);

// A decoder's tokens of a whole file, read as one text with its line ends; the first `characters` of it (0:
// all). Throws Error (missing file; what is not UTF-8, with line and byte), UsageError (a model that reads no
// running text), as Model::text_ids().
TokenIds running_text(const Model& model, const std::filesystem::path& file, std::int64_t characters = 0);

// Pieces of `length` tokens, the last one shorter where it does not divide.
std::vector<TokenIds> pieces_of(const TokenIds& text, std::int64_t length);

// Token ids (B,N) padded to the longest text, with a mask unless all have the same length.
ModelInput text_batch(const std::vector<const TokenIds*>& texts);
// The same from the outputs of prepare_text, which may be pairs: keeps their token types.
ModelInput padded_batch(const std::vector<const ModelInput*>& texts);

} // namespace hydrascope
