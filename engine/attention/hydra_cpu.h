// Hydra's fused loops on the CPU (cpu/hydra.h), for inputs of any strides.
#pragma once

#include "engine/attention/cpu/hydra.h"
#include "engine/attention/hydra.h"

namespace hydrascope {

// φ as the loops know them.
struct HydraCpuMaps {
  cpu::RowMap query = cpu::RowMap::unit_l2, key = cpu::RowMap::unit_l2;
  OverTokens over_tokens = OverTokens::nothing; // softmax: `key` is not looked at
  bool query_is_layer_input = false;
  bool keeps_float32 = false; // of half types, too: a LayerNorm follows
};

// For float32 and bfloat16 without gradients, not causal. Tokens are taken in parts whose number depends on N
// alone, so the result does not depend on the threads.
HydraFusedPath hydra_on_cpu(const HydraCpuMaps& maps);

} // namespace hydrascope
