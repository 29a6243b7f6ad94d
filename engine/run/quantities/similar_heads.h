// The distance of every head's weights to those of one chosen head. Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/quantity.h"
#include "engine/run/run.h"

namespace hydrascope {

enum class HeadMetric {
  jensen_shannon, // mean over real rows, in nats: 0 … ln 2 (Clark et al. 2019, "What does BERT look at?",
                  // section 6, which uses the sum instead)
  cosine,         // 1 − cosine of the flattened weights: 0 … 2, for weights that are not distributions
};

struct SimilarHeads {
  HeadIndex head;
  HeadMetric metric = HeadMetric::jensen_shannon; // cosine if any layer's weights are not distributions
  Array distances; // (L,H); NaN for kernels that split the features into another number of heads, and
                   // everywhere if the chosen head's own kernel does
};

struct SimilarHeadsKey {
  using Result = SimilarHeads;

  HeadIndex head; // under its layer's own kernel

  bool operator==(const SimilarHeadsKey&) const = default;
};
const Quantity& quantity_of(const SimilarHeadsKey& key);

} // namespace hydrascope
