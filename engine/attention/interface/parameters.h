// The parameters of kernels: descriptions that several kernels share, and reading the values of a spec.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

ParameterInfo heads_info();  // `heads`: the number of heads that the D features are split into
ParameterInfo seed_info();   // `seed`: of a kernel's random numbers
ParameterInfo shared_info(); // `shared`: one trained map for queries and keys
ParameterInfo bias_info();   // `bias`: b of y = x·W + b
ParameterInfo choice_info(std::string name, std::string meaning, std::vector<std::string> choices);

inline constexpr std::int64_t most_of_any_parameter = std::numeric_limits<int>::max();
// The value of `key` as a number from 1 to `most`; nullopt if it is not given. Throws UsageError.
std::optional<std::int64_t> positive_parameter(const KernelSpec& spec, std::string_view key,
                                               std::int64_t most = most_of_any_parameter);
// The value of `key`, 0 or 1; `otherwise` if it is not given. Throws UsageError.
bool flag_parameter(const KernelSpec& spec, std::string_view key, bool otherwise);
// The value of `seed`; 0 if it is not given. Throws UsageError.
std::uint64_t seed_parameter(const KernelSpec& spec);
// The seed of a layer's random numbers: different in every layer, `seed` itself in layer 0.
std::uint64_t layer_seed(std::uint64_t seed, int layer);

} // namespace hydrascope
