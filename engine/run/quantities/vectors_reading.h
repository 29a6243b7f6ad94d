// The vectors behind a query's weights, read off one layer.
#pragma once

#include "engine/run/pass.h"
#include "engine/run/run.h"

namespace hydrascope {

// Everything but the gradient. Throws UsageError for a head that the kernel does not have.
VectorsResult read_vectors(const VectorsAsk& ask, const LayerKernel& layer, const AttentionInput& input);

} // namespace hydrascope
