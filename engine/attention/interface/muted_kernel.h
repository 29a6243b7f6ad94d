// Heads whose output does not count.
#pragma once

#include <span>
#include <vector>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// What W_o receives (Kernel::finish, (B,H,N,d)), 0 in the d columns of these heads of the model, also for
// kernels that cut the D features otherwise (Hydra; `heads=`). Gradients taken at the kernel's output are
// then 0 in a muted head.
at::Tensor without_muted(const at::Tensor& finished, std::span<const int> muted);

// Which of a kernel's own `kernel_heads` heads still reach W_o where these of the model's `heads` heads are
// muted: all but those whose every column is.
std::vector<bool> heard_heads(std::span<const int> muted, std::int64_t heads, std::int64_t kernel_heads);

} // namespace hydrascope
