// Attention rollout (Abnar & Zuidema 2020, "Quantifying attention flow in transformers") through all layers.
// Plain header.
#pragma once

#include <vector>

#include "engine/base/array.h"
#include "engine/run/quantities/weights.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct RolloutResult;

struct RolloutKey {
  using Result = RolloutResult;

  HeadFusion fusion = HeadFusion::mean;
  std::vector<int> heads = {}; // to fuse; all where this is empty or a layer's kernel has none of them
  double discard = 0;          // share of each row's weights set to 0, lowest first; below 1

  bool operator==(const RolloutKey&) const = default;
};
struct RolloutResult {
  RolloutKey key;
  bool magnitudes = false;       // a layer with a signed kernel entered as |w| over its row sum
  std::vector<int> kernel_heads; // how many heads each layer's kernel has
  Array weights;                 // (1,N,N), rows sum to 1
};
const Quantity& quantity_of(const RolloutKey& key);

} // namespace hydrascope
