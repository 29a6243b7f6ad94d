// The vectors behind one query's weights: q and k, and the feature maps' φ(q) and φ(k). Plain header.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/array.h"
#include "engine/run/quantities/last_token.h"
#include "engine/run/quantity.h"

namespace hydrascope {

struct VectorsResult {
  int layer = 0;
  KernelSpec kernel;
  bool teacher_forced = false;
  bool untrained = false;
  int head = 0;
  std::int64_t query = 0;
  Array q, k;            // (h,N,d), h the kernel's own number of heads
  Array query_feature;   // (d′), φ(q) of the query token; empty if the kernel has no feature map
  Array key_features;    // (N,d′), φ(k)
  bool rescaled = false; // exponential maps: as engine/attention/interface/features.h's Features
  // Hydra kernels only, over the whole row of D features. out_c = gate_c ⊙ global.
  Array query_features; // (N,D), the gates φ(Q) of all tokens
  Array values;         // (N,D), V
  Array global;         // (D), Σ_t φ(K)_t ⊙ V_t
  Array gradient;       // (D), g of the query token at this layer; empty if not requested
};

struct VectorsKey {
  using Result = VectorsResult;

  int layer = 0;
  std::optional<KernelSpec> kernel = {}; // nullopt: the schedule's own kernel of that layer
  int head = 0;           // one of the kernel's heads, for φ; Hydra's φ is over the whole row
  std::int64_t query = 0; // token, or last_token, for φ(q)
  bool teacher_forced = false;
  // Also g of the query token, if the kernel has a global vector and the key is not teacher-forced.
  bool gradient = false;

  bool operator==(const VectorsKey&) const = default;
};
const Quantity& quantity_of(const VectorsKey& key);

} // namespace hydrascope
