#include "engine/training/loop/bfloat16.h"

#include <string>

#include <ATen/autocast_mode.h>

#include "engine/base/error.h"

namespace hydrascope::training {

bool has_fast_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool use_bfloat16(const std::string_view dtype) {
  if (dtype == "auto") return has_fast_bfloat16();
  if (dtype == "bfloat16") return true;
  if (dtype == "float32") return false;
  throw UsageError("--dtype " + std::string(dtype), "training runs in float32 or bfloat16",
                   "choose one of them");
}

NamedTensors bfloat16_matrices(const NamedTensors& parameters) {
  NamedTensors matrices;
  for (const auto& [name, value] : parameters)
    if (name.starts_with("encoder.layer.") && value.dim() == 2) matrices[name] = value.to(at::kBFloat16);
  return matrices;
}

Autocast::Autocast(const bool enabled)
    : enabled_(enabled), before_(at::autocast::is_autocast_enabled(at::kCPU)) {
  if (!enabled_) return;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!enabled_) return;
  // The cache contains bfloat16 copies of parameters, which the next step changes.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, before_);
}

} // namespace hydrascope::training
