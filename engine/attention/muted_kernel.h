// A kernel some of whose heads are silent: what a block runs where heads are muted.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/attention/kernel.h"

namespace hydrascope {

// The same kernel, but what W_o receives (finish()) is 0 in the d columns of these heads of the model, for
// kernels that cut the D features otherwise too (Hydra; `heads=`). Its weights, its output before finish()
// and its costs are the kernel's: gradients taken at that output are 0 in a muted head.
std::shared_ptr<const Kernel> mute_heads(std::shared_ptr<const Kernel> kernel, std::vector<int> heads);

// Which of a kernel's own `kernel_heads` heads still reach W_o where these of the model's `heads` heads are
// muted: all but those whose every column is.
std::vector<bool> heard_heads(std::span<const int> muted, std::int64_t heads, std::int64_t kernel_heads);

} // namespace hydrascope
