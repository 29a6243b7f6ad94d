// φ(x) = ReLU(x)², element-wise. Squared ReLU comes from Primer, where it is an activation of the MLP (So et
// al. 2021); as the feature map of an attention kernel it is not from a paper.
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

class ReluSquared final : public FeatureMap {
public:
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    return at::relu(x).square();
  }
};

} // namespace

RegistryEntry relu_squared_kernel() {
  KernelInfo info;
  info.name = "relu-squared";
  info.definition = "φ(x) = ReLU(x)²";
  info.feature_width = "d";
  info.source = "So et al. (2021), Primer: squared ReLU as an activation";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<ReluSquared>(); });
}

} // namespace hydrascope
