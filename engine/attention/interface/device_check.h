// Whether a device computes what the CPU does.
#pragma once

#include <string>

#include <c10/core/Device.h>

namespace hydrascope {

// Why a device must not be trusted, one sentence for the user: it fails, or a few kernels (softmax, Hydra and
// linear attention, by the path that they take there) differ on it from the CPU. Empty if neither is so.
// Takes some tenths of a second on a GPU.
std::string why_wrong(c10::Device device);

} // namespace hydrascope
