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

// Targets: scalars whose gradient is taken. `hidden` (1,N,D) is the last hidden state, `mask` (1,N) bool or
// undefined.

// Mean over real tokens: (1,D).
at::Tensor mean_pooled(const at::Tensor& hidden, const at::Tensor& mask = {});
// ½‖mean-pooled embedding‖².
at::Tensor norm_target(const at::Tensor& hidden, const at::Tensor& mask = {});
// Cosine similarity with another sentence's mean-pooled embedding (1,D), which is a constant.
at::Tensor similarity_target(const at::Tensor& hidden, const at::Tensor& mask, const at::Tensor& other);
// One logit of (1,C).
at::Tensor class_target(const at::Tensor& logits, std::int64_t index);

// ∂target/∂each of `points`, zeros where the target does not depend on one. Frees the graph.
std::vector<at::Tensor> gradients_at(const at::Tensor& target, const std::vector<at::Tensor>& points);

// Whether a target depends on token 0 of the last hidden state alone, by the gradient there (1,N,D).
bool reads_first_token_alone(const at::Tensor& gradient_at_last_hidden);

// The label of a class, or "class n".
std::string class_label(const ModelInfo& model, std::int64_t index);

} // namespace hydrascope
