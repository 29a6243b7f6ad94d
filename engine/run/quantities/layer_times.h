// The times of layers in passes without the prefix cache, gradients or readings, after one that warms up.
// Plain header.
#pragma once

#include <vector>

#include "engine/run/quantity.h"

namespace hydrascope {

struct LayerTimesKey {
  using Result = std::vector<std::vector<double>>; // by pass and layer: the block's seconds

  int passes = 1;

  bool operator==(const LayerTimesKey&) const = default;
};
const Quantity& quantity_of(const LayerTimesKey& key);

} // namespace hydrascope
