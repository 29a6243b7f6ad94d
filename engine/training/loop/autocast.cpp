#include "engine/training/loop/autocast.h"

#include <string>

#include <ATen/autocast_mode.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device.h"
#include "engine/attention/simd/processor.h"
#include "engine/base/error.h"

namespace hydrascope::training {

bool has_fast_bfloat16(const c10::Device device) {
  if (device.is_cuda()) return cuda_plugin() != nullptr && cuda_plugin()->runs_on(device.index());
  return device.is_cpu() && cpu::has_bfloat16_products(cpu::best_processor(true));
}

at::ScalarType product_type(const std::string_view dtype, const c10::Device device) {
  if (dtype == "auto") return has_fast_bfloat16(device) ? at::kBFloat16 : at::kFloat;
  if (dtype == "bfloat16") return at::kBFloat16;
  if (dtype == "float32") return at::kFloat;
  if (dtype == "float16" && !device.is_cpu()) return at::kHalf;
  throw UsageError("--dtype " + std::string(dtype),
                   device.is_cpu() ? "training on the CPU runs in float32 or bfloat16"
                                   : "training runs in float32, bfloat16 or float16",
                   "choose one of them");
}

bool autocasts(const Placement& placement) {
  return placement.device.is_cpu() && placement.dtype == at::kBFloat16;
}

NamedTensors matrices_in(const at::ScalarType type, const NamedTensors& parameters) {
  NamedTensors matrices;
  if (type == at::kFloat) return matrices;
  for (const auto& [name, value] : parameters)
    if (name.starts_with("encoder.layer.") && value.dim() == 2) matrices[name] = value.to(type);
  return matrices;
}

Autocast::Autocast(const c10::Device device, const at::ScalarType type)
    : device_(device.type()),
      enabled_(type != at::kFloat),
      before_(at::autocast::is_autocast_enabled(device_)),
      type_before_(at::autocast::get_autocast_dtype(device_)) {
  if (!enabled_) return;
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, type);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!enabled_) return;
  // The cache contains copies of parameters in the lower type; the next step changes the parameters.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
}

} // namespace hydrascope::training
