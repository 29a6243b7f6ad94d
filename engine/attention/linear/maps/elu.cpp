// φ(x) = 1 + ELU(x) (Katharopoulos et al. 2020, Eq. 7).
#include <ATen/TensorOperators.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/relu.h>

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

class Elu final : public FeatureMap {
public:
  // Logarithmic: if all features of a row are far below 0, exp would underflow, and the row become 0.
  bool logarithmic() const override { return true; }
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    return x.clamp_max(0) + at::log1p(at::relu(x)); // log(1 + ELU(x)): x below 0, log(1 + x) above
  }
  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::one_plus_elu; }
};

} // namespace

RegistryEntry elu_kernel() {
  KernelInfo info;
  info.name = "elu";
  info.definition = "φ(x) = 1 + ELU(x)";
  info.feature_width = "d";
  info.source = "Katharopoulos et al. (2020), Eq. 7";
  info.published = "28.1 Matthews (CoLA, BERT-base)";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<Elu>(); });
}

} // namespace hydrascope
