// Heads like a chosen one: how far every head's weights lie from its own.
#pragma once

#include <span>
#include <stop_token>

#include "engine/run/pass.h"
#include "engine/run/quantities/readings.h"

namespace hydrascope {

// Weights are formed in tiles of query rows, layer by layer. Throws Cancelled when `stop` is requested.
SimilarHeads similar_heads(const SimilarHeadsReading& reading, std::span<const LayerKernel> layers,
                           const std::stop_token& stop);

} // namespace hydrascope
