#include "engine/run/dtype.h"

#include "engine/base/error.h"

namespace hydrascope {

c10::ScalarType dtype_on_cpu(const std::string& dtype) {
  if (dtype == "float32") return c10::kFloat;
  if (dtype == "bfloat16") return c10::kBFloat16;
  throw UsageError("--dtype " + dtype, "the CPU computes in float32 or bfloat16", "use --dtype bfloat16");
}

c10::ScalarType dtype_on(const c10::Device device, const std::string& dtype) {
  return !device.is_cpu() && dtype == "float16" ? c10::kHalf : dtype_on_cpu(dtype);
}

} // namespace hydrascope
