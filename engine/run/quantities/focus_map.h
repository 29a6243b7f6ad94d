// The focus map of a layer: how much each token contributed to the run's target through its attention (Hydra
// paper, Eq. 15–17). Plain header.
#pragma once

#include "engine/base/array.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct FocusResult {
  int layer = 0;
  Array contributions; // (N), signed, not normalised
  double total = 0;    // out_c·g_c (all: Σ_c), which the contributions sum to
  double share = 1;    // of Σ_c out_c·g_c that the shown query carries; NaN where that sum is 0
  bool zero_gradient = false;
};

// With it come the run's target and query.
struct FocusKey {
  using Result = FocusResult;

  int layer = 0;

  bool operator==(const FocusKey&) const = default;
};
const Quantity& quantity_of(const FocusKey& key);

} // namespace hydrascope
