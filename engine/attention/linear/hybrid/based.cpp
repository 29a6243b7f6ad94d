// The Taylor map for keys that have left a short window of softmax (Arora et al., Based, 2024).
#include "engine/attention/linear/hybrid/hybrid_attention.h"
#include "engine/attention/linear/maps/known_maps.h"

namespace hydrascope {

RegistryEntry based_kernel() {
  KernelInfo info;
  info.name = "based";
  info.definition = "e^s for the last w keys, 1 + s + s²/2 for the others, s = q·k/√d, one denominator";
  info.feature_width = "1+d+d²";
  info.source = "Arora et al., Based (2024), section 3";
  info.query_map = info.key_map = {.takes_negatives = true};
  return hybrid_attention(
      std::move(info), [](const KernelSpec&) { return taylor_map(); }, 16);
}

} // namespace hydrascope
