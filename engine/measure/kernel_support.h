// What can be said of a kernel in a model's layers before anything is run. Plain header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

// Why the kernel with its parameters cannot run in such a layer, in the words of the device or of the kernel
// itself; empty if it can.
std::string why_unsupported(const KernelSpec& kernel, const LayerShape& shape);

// Multiply-accumulates of the attention operation of one sequence, as engine/measure/flops.h counts them; 0
// for a kernel that cannot run.
double attention_products(const KernelSpec& kernel, const LayerShape& shape);

// 1 … width, ascending: the numbers of heads that the D features can be cut into.
std::vector<std::int64_t> divisors_of(std::int64_t width);

} // namespace hydrascope
