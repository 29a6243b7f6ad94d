// Linear attention decoded by state (Katharopoulos et al. 2020, Eq. 16–20): Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j) of
// every key/value head.
#pragma once

#include <memory>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// The kernel's feature map and how it is used. The map and the spec have to outlive the state.
struct LinearDecoding {
  const KernelSpec& spec;
  const FeatureMap& map;
  bool normalised = true;
  std::int64_t heads = 1; // that the D features are split into
};

// By the CPU's fused loops, where they have the map and the inputs' type, or composed. Exponential maps keep
// the largest log-feature of each feature and divide their sums by it, rescaled whenever it grows: exact for
// inputs of any size.
std::unique_ptr<DecodingState> make_linear_decoding(const LinearDecoding& kernel, const AttentionShape& shape,
                                                    const KernelParameters& parameters);

} // namespace hydrascope
