// Hedgehog's map φ(x) = [exp y, exp −y], y = x·W + b (Zhang et al. 2024, Eq. 6), trained or held at its
// start.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "engine/attention/interface/parameter_infos.h"
#include "engine/attention/linear/maps/projection.h"

namespace hydrascope {
namespace {

class Hedgehog : public FeatureMap {
public:
  bool logarithmic() const override { return true; }
  std::int64_t width(std::int64_t head_width) const override { return 2 * head_width; }
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    return at::cat({x, -x}, -1);
  }
  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::plus_minus_exponential; }
};

class TrainedHedgehog final : public Hedgehog {
public:
  explicit TrainedHedgehog(ProjectionForm form) : form_(form) {}

  at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const override {
    return Hedgehog::features(project(x, side, form_, context.parameters), side, context);
  }
  KernelParameters initial_parameters(std::int64_t heads, std::int64_t head_width, int) const override {
    return identity_projections(form_, heads, head_width);
  }
  LoopProjection loop_projection(Side side, std::int64_t heads, std::int64_t head_width,
                                 const FeatureContext& context) const override {
    return loop_projection_of(side, form_, heads, head_width, context.parameters);
  }
  std::optional<LeadingMaps> leading_maps(std::int64_t heads, std::int64_t head_width,
                                          const KernelParameters& parameters) const override {
    return leading_maps_of(form_, heads, head_width, parameters);
  }
  double cost(const AttentionShape& shape) const override { return projection_cost(shape); }

private:
  ProjectionForm form_;
};

} // namespace

RegistryEntry hedgehog_kernel() {
  KernelInfo info;
  info.name = "hedgehog";
  info.definition = "φ(x) = [exp y, exp −y], y = x·W + b, trained to match softmax";
  info.feature_width = "2d";
  info.source = "Zhang et al. (2024), Eq. 6";
  info.published = "KL 0.172, 59.2 Matthews (CoLA, BERT-base)";
  info.trainable = true;
  info.parameters = {shared_info(), bias_info()};
  return normalised_linear(
      info, [](const KernelSpec& spec) { return std::make_unique<TrainedHedgehog>(projection_form(spec)); });
}

RegistryEntry hedgehog_untrained_kernel() {
  KernelInfo info;
  info.name = "hedgehog-untrained";
  info.definition = "φ(x) = [exp x, exp −x]: hedgehog held at W = I, b = 0";
  info.feature_width = "2d";
  info.source = "Zhang et al. (2024), ablation \"HH no train\"";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<Hedgehog>(); });
}

} // namespace hydrascope
