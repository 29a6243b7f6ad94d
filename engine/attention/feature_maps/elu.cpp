// φ(x) = 1 + ELU(x) (Katharopoulos et al. 2020, Eq. 7).
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include "engine/attention/feature_maps/feature_map.h"

namespace hydrascope {
namespace {

class Elu final : public FeatureMap {
public:
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    // exp(min(x, 0)) + max(x, 0): 1 + expm1(x) would round to 0 far below 0, and a select costs more than
    // both.
    return x.clamp_max(0).exp() + at::relu(x);
  }
};

} // namespace

RegistryEntry elu_kernel() {
  KernelInfo info;
  info.name = "elu";
  info.definition = "φ(x) = 1 + ELU(x)";
  info.feature_width = "d";
  info.source = "Katharopoulos et al. (2020), Eq. 7";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<Elu>(); });
}

} // namespace hydrascope
