// The number types that the CPU computes in.
#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace hydrascope {

// "float32" or "bfloat16". Throws UsageError for any other.
c10::ScalarType dtype_on_cpu(const std::string& dtype);

} // namespace hydrascope
