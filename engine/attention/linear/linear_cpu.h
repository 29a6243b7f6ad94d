// Linear attention by the CPU's fused loops (cpu/linear.h), for inputs of any strides that they support.
// Products do not depend on the number of threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/attention/interface/decoding.h"
#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// A projection for every head, in the form of the loops.
class HeadMaps {
public:
  HeadMaps(cpu::PointMap map, const LoopProjection& projection, std::int64_t head_width, bool normalised);

  // Valid as long as this is.
  cpu::LinearMap of(std::int64_t sequence, std::int64_t head) const;

private:
  // float32, the last two dimensions (of a bias the last) padded to whole lanes with 0.
  static at::Tensor padded(const at::Tensor& parameter);

  at::Tensor weight_, bias_, token_weights_;
  cpu::LinearMap common_;
};

// q (B,H,N,d), k and v (B,H_k,N,d), where H_k is H or, of grouped heads, the number of key/value heads, and
// so is that of the key projection's maps → out (B,H,N,d) of their type; mask (B,N) bool or undefined.
// normalised: divides the outputs by φ(q)·Σφ(k). Products of bfloat16 inputs are of bfloat16 where the
// processor has them.
AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, cpu::PointMap map,
                              const LoopProjection& query, const LoopProjection& key, bool normalised);

// The causal form of the same; products are of floats. `sums`: of the keys before these tokens, one for each
// sequence and key/value head, to which these tokens' keys are added; empty: there are none.
AttentionOutput causal_linear_on_cpu(const AttentionInput& input, const at::Tensor& mask,
                                     const HeadMaps& query, const HeadMaps& key,
                                     std::vector<cpu::KeySums>& sums);

// Numerators and denominators relative to e^reference, which is −∞ where a query is masked.
struct LinearSums {
  at::Tensor numerator;              // (B,H,N,d) float32
  at::Tensor denominator, reference; // (B,H,N,1)
};
// Those of the causal form. key_ends: tokens from there on have a query but no key; of each sequence, or in
// one entry of all. Each of these queries must have an earlier key. φ must be what the loops compute, not a
// multiple of it as Performer's.
LinearSums causal_linear_sums_on_cpu(const AttentionInput& input, const at::Tensor& mask,
                                     std::span<const std::int64_t> key_ends, const HeadMaps& query,
                                     const HeadMaps& key, std::vector<cpu::KeySums>& sums);

// The sums as tensors, to continue from, and back into `sums`, which have the right lengths. Throws
// UsageError.
DecodingTensors tensors_of(const std::vector<cpu::KeySums>& sums);
void restore_sums(const DecodingTensors& saved, std::vector<cpu::KeySums>& sums);
std::int64_t bytes_of(const std::vector<cpu::KeySums>& sums);

} // namespace hydrascope
