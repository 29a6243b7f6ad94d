// φ(x) = exp(t x), element-wise, t = 1 or 2 (Zhang et al. 2024, section 3.2).
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

class Exponential final : public FeatureMap {
public:
  explicit Exponential(int temperature) : temperature_(temperature) {}

  bool logarithmic() const override { return true; }
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    return x * temperature_;
  }
  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::exponential; }
  LoopProjection loop_projection(Side, const FeatureContext&) const override {
    return {.scale = static_cast<double>(temperature_)};
  }

private:
  int temperature_;
};

RegistryEntry exponential_kernel(int temperature) {
  KernelInfo info;
  info.name = fmt::format("exp-t{}", temperature);
  info.definition = temperature == 1 ? "φ(x) = exp(x)" : fmt::format("φ(x) = exp({} x)", temperature);
  info.feature_width = "d";
  info.source = "Zhang et al. (2024), section 3.2";
  info.published = fmt::format("{} Matthews (CoLA, BERT-base)", temperature == 1 ? "45.9" : "50.0");
  return normalised_linear(
      info, [temperature](const KernelSpec&) { return std::make_unique<Exponential>(temperature); });
}

} // namespace

RegistryEntry exp_t1_kernel() { return exponential_kernel(1); }
RegistryEntry exp_t2_kernel() { return exponential_kernel(2); }

} // namespace hydrascope
