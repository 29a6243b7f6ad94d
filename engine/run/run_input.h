// The user's picture or text as a model takes it.
#pragma once

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

class InputPreparer {
public:
  // Throws UsageError for a picture given to a text model or a text to a vision model, and as the model's own
  // preparation.
  PreparedInput prepare(const AppliedModel& model, const RunInput& input, std::optional<int> image_size);

private:
  const std::string& hash_of(const std::shared_ptr<const Image>& image);

  std::vector<std::pair<std::weak_ptr<const Image>, std::string>> image_hashes_;
  std::vector<PreparedInput> images_; // resized ones, most recent last
};

// The input with some of its tokens hidden, as Model::with_hidden does and with its errors.
PreparedInput with_hidden_tokens(const Model& model, PreparedInput whole,
                                 const std::vector<std::int64_t>& tokens);

// The tokens as people see them: word pieces, "[class]", "row 3, column 4" (from 1).
std::vector<TokenInfo> token_infos(const ModelInfo& model, const ModelInput& input);

} // namespace hydrascope
