#include "engine/run/reading.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/execution.h"

namespace hydrascope {

void check_below(const char* subject, std::int64_t value, std::int64_t limit, const char* what) {
  if (value >= 0 && value < limit) return;
  throw UsageError(fmt::format("{} {}", subject, value), fmt::format("there are {} {}", limit, what),
                   fmt::format("use 0 to {}", limit - 1));
}

LayerKernel PlanContext::kernel(bool teacher_forced, int layer, const std::optional<KernelSpec>& spec) const {
  const Pass& of = pass(teacher_forced);
  if (!spec) return of.layers[static_cast<std::size_t>(layer)];
  return layer_kernel(*of.model.model, layer, seeded(*spec, request.execution.seed));
}

bool is_another_kernel(const Schedule& schedule, int layer, const std::optional<KernelSpec>& spec) {
  return spec && *spec != schedule.layers.at(static_cast<std::size_t>(layer));
}

QuantityKeys comparisons_in(const QuantityKeys& keys, const Schedule& schedule) {
  QuantityKeys compared;
  for (const QuantityKey& key : keys)
    if (key.quantity().compares(key, schedule)) compared.add(key);
  return compared;
}

} // namespace hydrascope
