#include "engine/attention/interface/features.h"

#include <ATen/core/grad_mode.h>

namespace hydrascope {

std::optional<Features> features_of(const Kernel& kernel, const AttentionInput& input,
                                    const KernelParameters& parameters, const at::Tensor& query_rows,
                                    const at::Tensor& key_rows) {
  const auto* const mapped = dynamic_cast<const FeatureKernel*>(&kernel);
  if (mapped == nullptr) return std::nullopt;
  const at::NoGradGuard no_gradients;
  return mapped->features(input, parameters, query_rows, key_rows);
}

} // namespace hydrascope
