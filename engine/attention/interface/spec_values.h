// Small readers for the written forms of kernels and schedules.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

// A kernel's parameter as a number of at least 1; nullopt if not given. Throws UsageError.
std::optional<std::int64_t> positive_parameter(const KernelSpec& spec, std::string_view key);
// A kernel's `seed=`, 0 if not given. Throws UsageError.
std::uint64_t seed_parameter(const KernelSpec& spec);
// What a layer draws with: every layer its own numbers, layer 0 the seed's own.
std::uint64_t layer_seed(std::uint64_t seed, int layer);
// A kernel's parameter 0 or 1. Throws UsageError.
bool flag_parameter(const KernelSpec& spec, std::string_view key, bool otherwise);

} // namespace hydrascope
