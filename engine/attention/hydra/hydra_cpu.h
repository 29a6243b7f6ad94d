// Hydra's fused loops on the CPU (cpu/hydra.h), for inputs of any strides.
#pragma once

#include "engine/attention/hydra/hydra.h"

namespace hydrascope {

// For float32 and bfloat16 without gradients, not causal, every map. Tokens are taken in parts whose number
// depends on N alone, so the result does not depend on the threads.
HydraFusedPath hydra_on_cpu();

} // namespace hydrascope
