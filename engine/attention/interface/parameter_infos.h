// Parameters that several kernels share, as the registry describes them.
#pragma once

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope {

ParameterInfo heads_info();  // into how many heads the D features are cut
ParameterInfo seed_info();   // of a kernel's random numbers
ParameterInfo shared_info(); // one trained map for queries and keys
ParameterInfo bias_info();   // b of y = x·W + b
ParameterInfo choice_info(std::string name, std::string meaning, std::vector<std::string> choices);

} // namespace hydrascope
