// Weights as they are shown: of words instead of word pieces, without special tokens, or A less B. Plain
// header.
#pragma once

#include <memory>
#include <vector>

#include "app/views/shown_tokens.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

struct ShownWeights {
  std::vector<ShownToken> tokens;
  // (h,R,n), n shown tokens; `rows` are indices into `tokens`. Null: nothing is shown.
  std::shared_ptr<const WeightsResult> weights;

  bool whole() const { return weights != nullptr && weights->rows.size() == tokens.size(); }
};

// `weights` belongs to `run`, and is not copied where every token is shown by itself.
ShownWeights shown_weights(const std::shared_ptr<const RunResult>& run, const WeightsResult& weights,
                           const TokenDisplay& display);

// a − b: signed, of the same rows. Throws UsageError where heads or tokens differ.
WeightsResult subtract_weights(const WeightsResult& a, const WeightsResult& b);

} // namespace hydrascope::app
