// Attention rollout (Abnar & Zuidema 2020, "Quantifying attention flow in transformers") through all layers.
// Plain header.
#pragma once

#include <vector>

#include "engine/base/array.h"
#include "engine/run/quantities/head_fusion.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct RolloutResult;

struct RolloutKey {
  using Result = RolloutResult;

  HeadFusion fusion = HeadFusion::mean;
  std::vector<int> heads = {}; // that are fused; empty: all. Of a kernel with fewer heads its last one
  double discard = 0;          // share of the lowest weights of each row that is set to 0, below 1

  bool operator==(const RolloutKey&) const = default;
};
struct RolloutResult {
  RolloutKey key;
  bool magnitudes = false; // a layer with a signed kernel entered as |w| over its row sum
  Array weights;           // (1,N,N), rows sum to 1
};
const Quantity& quantity_of(const RolloutKey& key);

} // namespace hydrascope
