// Targets: scalars computed from a model's output, whose gradient focus maps use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/models/transformer/model.h"
#include "engine/run/run.h"

namespace hydrascope {

// A target checked against a model, with names resolved.
struct CheckedTarget {
  Target::Kind kind = Target::Kind::norm; // predicted, class_index, similarity or norm
  int index = 0;                          // class_index
  std::string text;                       // similarity
};

// Without a classifier `predicted` becomes `norm`. A class name (a label, one of its comma-separated names,
// or an adapter's class id; case is ignored; a decoder's token) becomes its index. Throws UsageError: no such
// class, no classifier, similarity with a vision model.
CheckedTarget check_target(const Target& target, const Model& model,
                           const std::vector<AdapterInfo>& adapters);

struct TargetValue {
  at::Tensor value;  // a scalar with its graph
  std::string words; // "logit of tabby"
};
// logits (1,C), final hidden (1,N,D), mask (1,N) or undefined; `other` (1,D), for similarity alone, is the
// second sentence's mean-pooled embedding. Throws UsageError for a class index out of range.
TargetValue target_value(const CheckedTarget& target, const Model& model, const at::Tensor& logits,
                         const at::Tensor& final_hidden, const at::Tensor& mask, const at::Tensor& other);

// The probabilities of logits (…,C): softmax, or the sigmoid of each where the labels are independent.
at::Tensor probabilities_of(const at::Tensor& logits, const ModelInfo& model);

// In the following, `hidden` (1,N,D) is the last hidden state and `mask` (1,N) bool or undefined.

// The mean over real tokens: (1,D).
at::Tensor mean_pooled(const at::Tensor& hidden, const at::Tensor& mask = {});
// ½‖mean-pooled embedding‖².
at::Tensor norm_target(const at::Tensor& hidden, const at::Tensor& mask = {});
// Cosine similarity with another sentence's mean-pooled embedding (1,D), which is a constant.
at::Tensor similarity_target(const at::Tensor& hidden, const at::Tensor& mask, const at::Tensor& other);
// One logit of (1,C).
at::Tensor class_target(const at::Tensor& logits, std::int64_t index);

// The gradient of the target with respect to each of `points`, zeros if it does not depend on one. Frees the
// graph.
std::vector<at::Tensor> gradients_at(const at::Tensor& target, const std::vector<at::Tensor>& points);

// The one token of the last hidden state that a target depends on, from the gradient there (1,N,D); nullopt
// if it depends on several. Token 0 if it depends on none.
std::optional<std::int64_t> only_token_read(const at::Tensor& gradient_at_last_hidden);

} // namespace hydrascope
