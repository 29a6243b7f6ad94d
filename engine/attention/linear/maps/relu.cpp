// φ(x) = ReLU(x).
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

class Relu final : public FeatureMap {
public:
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override { return at::relu(x); }
  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::relu; }
};

} // namespace

RegistryEntry relu_kernel() {
  KernelInfo info;
  info.name = "relu";
  info.definition = "φ(x) = ReLU(x)";
  info.feature_width = "d";
  info.source = "Zhang et al. (2024), table 2";
  info.published = "39.5 Matthews (CoLA, BERT-base)";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<Relu>(); });
}

} // namespace hydrascope
