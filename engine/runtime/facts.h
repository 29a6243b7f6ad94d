// Entropy, KL, ρ and output change of a layer, kept between runs: small numbers that cost a whole weight
// matrix each.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/runtime/kernel_facts.h"

namespace hydrascope {

// Per head; NaN where undefined: entropy and KL of kernels without positive, normalised weights, and anything
// of a kernel that splits the features into another number of heads.
struct LayerFacts {
  std::vector<float> entropy, kl, spearman; // (H)
  std::vector<float> change;                // (H,3): ratio of norms, cosine, relative error
  double clamped_share = 0;
};

// The facts asked for, read off one sequence's q, k, v (B = 1). Throws as the kernel does.
LayerFacts layer_facts(const FactKinds& kinds, const AttentionInput& input, const LayerKernel& kernel);

// Facts by what they were computed from; forgotten all at once when there are many.
class FactCache {
public:
  // nullptr if any of the kinds asked for is missing.
  const LayerFacts* find(const std::string& key, const FactKinds& kinds) const;
  // Adds to what is known under this key.
  const LayerFacts& insert(const std::string& key, const LayerFacts& facts);

private:
  std::unordered_map<std::string, LayerFacts> facts_;
};

} // namespace hydrascope
