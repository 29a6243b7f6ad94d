#include "engine/run/reading.h"

#include <fmt/format.h>

#include "engine/base/error.h"

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

double estimated_bytes(const QuantityKeys& quantities, const ModelInfo& model, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  double bytes = 3.0 * model.heads * n * n * sizeof(float); // scores, weights and a temporary of one layer
  for (const QuantityKey& key : quantities) bytes += key.quantity().bytes(key, model, tokens);
  return bytes;
}

Array to_array(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* first = values.const_data_ptr<float>();
  return Array{values.sizes().vec(), std::vector<float>(first, first + values.numel())};
}

} // namespace hydrascope
