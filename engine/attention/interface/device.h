// Devices by the names of the command line.
#pragma once

#include <string>

#include <c10/core/Device.h>

namespace hydrascope {

// "auto" and "cpu": the CPU; "cuda" or "cuda:i": that GPU. Throws Error where there is no CUDA, with the
// reason, UsageError for any other name.
c10::Device device_of(const std::string& text);

} // namespace hydrascope
