// What a focus map's gradient is taken of, made of what a model delivered.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/models/model_info.h"
#include "engine/run/run.h"

namespace hydrascope {

// A target with nothing left to find out but numbers.
struct CheckedTarget {
  Target::Kind kind = Target::Kind::norm; // predicted, class_index, similarity or norm
  int index = 0;                          // class_index
  std::string text;                       // similarity
};

// `predicted` becomes `norm` without a classifier, a class name (a label, one of its comma-separated names,
// or an adapter's id, whatever the case) an index. Throws UsageError: no such class, no classifier, a
// picture's similarity with a text.
CheckedTarget check_target(const Target& target, const ModelInfo& model,
                           const std::vector<AdapterInfo>& adapters);

struct TargetValue {
  at::Tensor value;  // a scalar with its graph
  std::string words; // "logit of tabby"
};
// logits (1,C), final hidden (1,N,D), mask (1,N) or undefined; `other` (1,D) is the second sentence's
// mean-pooled embedding, for a similarity.
TargetValue target_value(const CheckedTarget& target, const ModelInfo& model, const at::Tensor& logits,
                         const at::Tensor& final_hidden, const at::Tensor& mask, const at::Tensor& other);

// The label of a class, or "class n".
std::string class_label(const ModelInfo& model, std::int64_t index);

} // namespace hydrascope
