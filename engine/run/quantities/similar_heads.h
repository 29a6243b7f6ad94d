// How far the weights of every head lie from those of one. Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/muted_heads.h"
#include "engine/run/quantities/head_metric.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct SimilarHeads {
  HeadIndex head;
  HeadMetric metric = HeadMetric::jensen_shannon; // cosine where any layer's weights are no distributions
  Array distances; // (L,H); NaN for kernels that split the features into another number of heads, and for all
                   // where the head's own kernel does
};

struct SimilarHeadsKey {
  using Result = SimilarHeads;

  HeadIndex head; // in place, by its layer's own kernel

  bool operator==(const SimilarHeadsKey&) const = default;
};
const Quantity& quantity_of(const SimilarHeadsKey& key);

} // namespace hydrascope
