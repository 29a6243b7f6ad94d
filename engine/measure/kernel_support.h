// Whether a kernel can run in a model's layers, and its cost, without running it. Plain header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

// The reason why the kernel with its parameters cannot run in such a layer, as the device or the kernel
// states it; empty if it can. Loads CUDA for a layer on a CUDA device.
std::string why_unsupported(const KernelSpec& kernel, const LayerShape& shape);

// Multiply-accumulates of the attention operation of one sequence, as engine/measure/flops.h counts them; 0
// for a kernel that cannot run.
double attention_products(const KernelSpec& kernel, const LayerShape& shape);

// The divisors of `width`, ascending: the numbers of heads that D features can be split into.
std::vector<std::int64_t> divisors_of(std::int64_t width);

} // namespace hydrascope
