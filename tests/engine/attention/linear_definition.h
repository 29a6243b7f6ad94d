// Linear attention of one head by its definition, in double precision and over all pairs of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/attention/linear/cpu/linear.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope::testing_inputs {

// φ of a token of one head of x, every entry of it (taylor's products in both orders).
std::vector<double> defined_features(const cpu::LinearMap& map, const Sequence& x, std::int64_t head,
                                     std::int64_t token);

struct DefinedOutput {
  std::vector<double> out; // (N,d), 0 in masked rows and where the denominator is 0
  std::int64_t zero_denominators = 0;
};
// out_i = Σ_j φ(q_i)·φ(k_j) v_j over the real tokens j, normalised: divided by Σ_j φ(q_i)·φ(k_j). `mask` as
// in cpu::add_keys. causal: over j ≤ i.
DefinedOutput defined_linear_attention(const cpu::LinearMap& map, const Sequence& q, const Sequence& k,
                                       const Sequence& v, std::int64_t head, const unsigned char* mask,
                                       bool causal = false);

} // namespace hydrascope::testing_inputs
