// Kernels in cross-attention, whose queries and keys are different tokens in different numbers.
#pragma once

#include <memory>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// The kernel for inputs with AttentionInput::queries: rows of the N queries over the M keys. Runs it on
// pieces of M queries, the last filled up, so that every kernel works unchanged that knows no positions and
// takes no layer input; the others say why they do not. Rows are numbered through the N queries and the M
// keys. Weights are (B,h,R,N + M), 0 for keys that are queries and in rows that are keys.
std::shared_ptr<const Kernel> for_cross_attention(std::shared_ptr<const Kernel> kernel);

} // namespace hydrascope
