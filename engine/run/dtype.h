// The number types that a device computes in.
#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace hydrascope {

// "float32" or "bfloat16". Throws UsageError for any other.
c10::ScalarType dtype_on_cpu(const std::string& dtype);
// On any other device "float16", too.
c10::ScalarType dtype_on(c10::Device device, const std::string& dtype);

} // namespace hydrascope
