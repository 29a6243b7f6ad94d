// Feature maps of one kernel that another one uses as well.
#pragma once

#include <memory>

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// φ(x) = exp y, y = x·W + b: kernel `hedgehog-exp`. Reads `shared=` and `bias=`. Throws UsageError.
std::unique_ptr<FeatureMap> hedgehog_exp_map(const KernelSpec& spec);
// φ(q)·φ(k) = 1 + s + s²/2, s = q·k/√d: kernel `taylor`.
std::unique_ptr<FeatureMap> taylor_map();

} // namespace hydrascope
