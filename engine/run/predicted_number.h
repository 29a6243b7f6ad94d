// What a model predicts whose classifier has one output: a number. Plain header.
#pragma once

#include "engine/run/run.h"

namespace hydrascope {

// Whether the model predicts a number in the unit of its labels, as transformers' models with num_labels = 1
// do: its logit is that number, and there are no classes with probabilities.
inline bool predicts_number(const ModelInfo& model) {
  return model.has_classifier && !model.causal && model.labels.size() == 1 && !model.independent_labels;
}

} // namespace hydrascope
