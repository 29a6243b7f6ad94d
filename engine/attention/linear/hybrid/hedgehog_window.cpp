// Hedgehog's trained map for keys that have left a window of softmax (Zhang et al., LoLCATs, 2024).
#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/hybrid/hybrid_attention.h"
#include "engine/attention/linear/maps/known_maps.h"

namespace hydrascope {

RegistryEntry hedgehog_window_kernel() {
  KernelInfo info;
  info.name = "hedgehog-window";
  info.definition = "e^(q·k/√d) for the last w keys, hedgehog's φ(q)·φ(k) for the others, one denominator";
  info.feature_width = "2d";
  info.source = "Zhang et al., LoLCATs (2024), Eq. 6";
  info.trainable = true;
  info.parameters = {shared_info(), bias_info()};
  return hybrid_attention(std::move(info), hedgehog_map, 64);
}

} // namespace hydrascope
