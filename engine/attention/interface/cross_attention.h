// Kernels in cross-attention, whose queries and keys are different tokens in different numbers.
#pragma once

#include <memory>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// The kernel for inputs with AttentionInput::queries: rows of the N queries over the M keys. Runs it on
// pieces of M queries, the last filled up, so that every kernel that knows no positions works unchanged; the
// others say why they do not. Weights are (B,h,R,N + M), 0 for keys that are queries and in rows that are
// keys.
std::shared_ptr<const Kernel> for_cross_attention(std::shared_ptr<const Kernel> kernel);

} // namespace hydrascope
