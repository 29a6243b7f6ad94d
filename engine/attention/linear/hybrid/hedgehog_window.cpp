// Hedgehog's trained exponentials for keys that have left a window of softmax (Zhang et al., LoLCATs, 2024).
// Without the negation: e^y + e^−y is at least 2, so that each of these keys would weigh 2d or more, whatever
// W and b, beside softmax's e^s. (The paper has bounded features, e^(s − max s), and a trained factor between
// the two.)
#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/hybrid/hybrid_attention.h"
#include "engine/attention/linear/maps/known_maps.h"

namespace hydrascope {

RegistryEntry hedgehog_window_kernel() {
  KernelInfo info;
  info.name = "hedgehog-window";
  info.definition =
      "e^(q·k/√d) for the last w keys, φ(q)·φ(k) for the others, φ(x) = exp(x·W + b), one denominator";
  info.feature_width = "d";
  info.source = "Zhang et al., LoLCATs (2024), Eq. 6";
  info.trainable = true;
  info.parameters = {shared_info(), bias_info()};
  return hybrid_attention(std::move(info), hedgehog_exp_map, 64);
}

} // namespace hydrascope
