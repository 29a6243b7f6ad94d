// Hydra attention decoded by state: one vector of D numbers a sequence, with a softmax over tokens three.
#pragma once

#include <memory>

#include "engine/attention/hydra/hydra.h"
#include "engine/attention/interface/decoding.h"

namespace hydrascope {

// By the CPU's fused loops, where they have the maps and the inputs' type, or composed. The maps have to
// outlive the state.
std::unique_ptr<DecodingState> make_hydra_decoding(const HydraMaps& maps, const AttentionShape& shape);

} // namespace hydrascope
