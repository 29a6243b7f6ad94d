// A layer's weights at the resolution of the screen, read off one layer in blocks of query rows.
#pragma once

#include <stop_token>

#include "engine/run/pass.h"
#include "engine/run/run.h"

namespace hydrascope {

// The ask with its counts filled in and its cells no more than the weights under them. Throws UsageError for
// rows, columns and heads that do not exist.
TileAsk complete_tile(TileAsk ask, std::int64_t tokens, std::int64_t heads);

// Never holds more than some 32 MB of weights at once; `output_weight` (W_o) is needed for value-weighted
// tiles alone. Throws Cancelled.
TileResult read_tile(const TileAsk& asked, const LayerKernel& layer, const AttentionInput& input,
                     const at::Tensor& output_weight, const std::stop_token& stop);

} // namespace hydrascope
