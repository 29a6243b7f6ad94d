// Hybrid attention decoded by state: the sums over the keys that have left the window, and those in it.
#pragma once

#include <memory>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// The map has to outlive the state.
std::unique_ptr<DecodingState> make_hybrid_decoding(const FeatureMap& map, std::int64_t window,
                                                    const AttentionShape& shape,
                                                    const KernelParameters& parameters);

} // namespace hydrascope
