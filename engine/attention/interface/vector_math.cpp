#include "engine/attention/interface/vector_math.h"

#include <mutex>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

namespace hydrascope {

void resolve_vector_math() {
  static std::once_flag once;
  std::call_once(once, [] {
    const at::NoGradGuard no_gradients;
    // ATen/cpu/vml.h lists them.
    for (const char* const name :
         {"aten::acos", "aten::asin", "aten::atan", "aten::cos", "aten::erf", "aten::erfc", "aten::erfinv",
          "aten::exp", "aten::log", "aten::log2", "aten::log10", "aten::sin", "aten::sqrt", "aten::tan",
          "aten::tanh", "aten::trunc"}) {
      const auto function =
          c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>();
      for (const at::ScalarType type : {at::kFloat, at::kDouble}) function.call(at::full({1}, 0.5, type));
    }
  });
}

} // namespace hydrascope
