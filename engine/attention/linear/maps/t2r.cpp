// φ(x) = ReLU(x·W + b), trained with the task (Kasai et al. 2021, Eq. 3) or by Hedgehog's distillation (Zhang
// et al. 2024, ablation "T2R-HH"): the same map, trained in two ways.
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/maps/projection.h"

namespace hydrascope {
namespace {

class T2R final : public FeatureMap {
public:
  explicit T2R(const KernelSpec& spec) : form_(projection_form(spec)), seed_(seed_parameter(spec)) {}

  at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const override {
    return at::relu(project(x, side, form_, context.heads, given_or_initial(context)));
  }
  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::relu; }
  LoopProjection loop_projection(Side side, const FeatureContext& context) const override {
    return loop_projection_of(side, form_, context.heads, given_or_initial(context));
  }
  KernelParameters initial_parameters(const HeadShape& shape, int layer) const override {
    return random_projections(form_, shape, layer_seed(seed_, layer));
  }
  std::optional<LeadingMaps> leading_maps(const HeadShape& shape,
                                          const KernelParameters& parameters) const override {
    return leading_maps_of(form_, shape, parameters);
  }
  double cost(const AttentionShape& shape) const override { return projection_cost(shape); }

private:
  // A W that is missing is the one drawn at the start. (One that is there, but undefined, is I: it has been
  // applied before. A missing b is 0, as at the start.)
  KernelParameters given_or_initial(const FeatureContext& context) const {
    KernelParameters parameters = context.parameters;
    const bool all =
        parameters.contains("query_map.weight") && (form_.shared || parameters.contains("key_map.weight"));
    if (all) return parameters;
    for (const auto& [name, start] : initial_parameters(context.heads, 0))
      parameters.try_emplace(name, start.to(context.device));
    return parameters;
  }

  ProjectionForm form_;
  std::uint64_t seed_;
};

RegistryEntry entry(const char* name, const char* definition, const char* source, const char* published) {
  KernelInfo info;
  info.name = name;
  info.definition = definition;
  info.feature_width = "d";
  info.source = source;
  info.published = published;
  info.trainable = true;
  info.parameters = {shared_info(), seed_info()};
  return normalised_linear(info, [](const KernelSpec& spec) { return std::make_unique<T2R>(spec); });
}

} // namespace

RegistryEntry t2r_kernel() {
  return entry("t2r", "φ(x) = ReLU(x·W + b), trained with the task", "Kasai et al. (2021), Eq. 3",
               "43.6 Matthews (CoLA, BERT-base)");
}
RegistryEntry t2r_hh_kernel() {
  return entry("t2r-hh", "φ(x) = ReLU(x·W + b), trained to match softmax",
               "Zhang et al. (2024), ablation \"T2R-HH\"", "56.9 Matthews (CoLA, BERT-base)");
}

} // namespace hydrascope
