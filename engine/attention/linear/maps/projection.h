// The trainable part of learned feature maps: y = x·W + b per head, one pair (W, b) for queries and one for
// keys.
#pragma once

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

struct ProjectionForm {
  bool shared = false; // query_map serves both sides
  bool bias = true;
};
// Reads `shared=` and `bias=`. Throws UsageError.
ProjectionForm projection_form(const KernelSpec& spec);

// y = x·W + b for x (B,H,R,d), W = SIDE_map.weight (H,d,d), b = SIDE_map.bias (H,d); with grouped heads there
// is a key map for each key/value head, and a shared map is that of the key/value head: the queries' heads of
// a group use it alike. Without W in the parameters W = I, without b b = 0. Throws UsageError for a wrong
// shape.
at::Tensor project(const at::Tensor& x, Side side, const ProjectionForm& form, const HeadShape& heads,
                   const KernelParameters& parameters);

// The same W and b for the fused loops.
LoopProjection loop_projection_of(Side side, const ProjectionForm& form, const HeadShape& heads,
                                  const KernelParameters& parameters);

// The maps of both sides, if the parameters hold a W for each; undefined in `others`, which means W = I, b =
// 0. nullopt where grouped heads share a map, too. Throws UsageError for a wrong shape.
std::optional<LeadingMaps> leading_maps_of(const ProjectionForm& form, const HeadShape& heads,
                                           const KernelParameters& parameters);

// W = I, b = 0 under the names of the form.
KernelParameters identity_projections(const ProjectionForm& form, const HeadShape& heads);

// Kaiming-uniform W (He et al. 2015, for ReLU: |w| ≤ √(6/d)) drawn from the seed, b = 0.
KernelParameters random_projections(const ProjectionForm& form, const HeadShape& heads, std::uint64_t seed);

// Multiply-accumulates of both projections: 2·N·D·d; of grouped heads N·(H + H_kv)·d².
double projection_cost(const AttentionShape& shape);

} // namespace hydrascope
