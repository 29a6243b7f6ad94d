// The focus map of a layer: each token's contribution to the run's target through the layer's attention
// (Hydra paper, Eq. 15–17). Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct FocusResult {
  int layer = 0;
  Array contributions; // (N), signed, not normalised; sums to `total`
  double total = 0;    // out_c·g_c of the query c; for all queries Σ_c out_c·g_c
  double share = 1;    // total / Σ_c out_c·g_c; NaN where that sum is 0
  bool zero_gradient = false;
};

// The target and query are the run's; RunResult names both.
struct FocusKey {
  using Result = FocusResult;

  int layer = 0;

  bool operator==(const FocusKey&) const = default;
};
const Quantity& quantity_of(const FocusKey& key);

} // namespace hydrascope
