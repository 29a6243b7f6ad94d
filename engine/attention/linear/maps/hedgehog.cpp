// Hedgehog's maps of y = x·W + b (Zhang et al. 2024), trained or held at W = I, b = 0: φ(x) = [exp y, exp −y]
// (Eq. 6), exp y alone (Eq. 3), and with softmaxes over features [softmax y, softmax −y] (Eq. 5 with the
// negation of Eq. 6).
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <fmt/format.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/maps/known_maps.h"
#include "engine/attention/linear/maps/projection.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

class Hedgehog : public FeatureMap {
public:
  explicit Hedgehog(bool negation) : negation_(negation) {}

  bool logarithmic() const override { return true; }
  std::int64_t width(std::int64_t head_width) const override { return (negation_ ? 2 : 1) * head_width; }
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    return negation_ ? at::cat({x, -x}, -1) : x;
  }
  std::optional<cpu::PointMap> point_map() const override {
    return negation_ ? cpu::PointMap::plus_minus_exponential : cpu::PointMap::exponential;
  }

private:
  bool negation_;
};

class TrainedHedgehog final : public Hedgehog {
public:
  TrainedHedgehog(ProjectionForm form, bool negation) : Hedgehog(negation), form_(form) {}

  at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const override {
    return Hedgehog::features(project(x, side, form_, context.heads, context.parameters), side, context);
  }
  KernelParameters initial_parameters(const HeadShape& shape, int) const override {
    return identity_projections(form_, shape);
  }
  LoopProjection loop_projection(Side side, const FeatureContext& context) const override {
    return loop_projection_of(side, form_, context.heads, context.parameters);
  }
  std::optional<LeadingMaps> leading_maps(const HeadShape& shape,
                                          const KernelParameters& parameters) const override {
    return leading_maps_of(form_, shape, parameters);
  }
  double cost(const AttentionShape& shape) const override { return projection_cost(shape); }

private:
  ProjectionForm form_;
};

enum class Form { two, eq5, joint };

Form form_parameter(const KernelSpec& spec) {
  const auto found = spec.parameters.find("form");
  if (found == spec.parameters.end() || found->second == "two") return Form::two;
  if (found->second == "eq5") return Form::eq5;
  if (found->second == "joint") return Form::joint;
  throw UsageError(spec.text(), fmt::format("there is no form \"{}\"", found->second),
                   "write hedgehog-softmax:form=two, form=eq5 or form=joint");
}

class HedgehogSoftmax final : public FeatureMap {
public:
  explicit HedgehogSoftmax(const KernelSpec& spec)
      : projection_(projection_form(spec)), form_(form_parameter(spec)) {}

  bool logarithmic() const override { return true; }
  std::int64_t width(std::int64_t head_width) const override {
    return form_ == Form::eq5 ? head_width : 2 * head_width;
  }

  at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const override {
    const at::Tensor y = project(x, side, projection_, context.heads, context.parameters);
    switch (form_) {
      case Form::eq5: return at::log_softmax(y, -1);
      case Form::joint: return at::log_softmax(at::cat({2 * y, -2 * y}, -1), -1);
      case Form::two: break;
    }
    return at::cat({at::log_softmax(y, -1), at::log_softmax(-y, -1)}, -1);
  }
  KernelParameters initial_parameters(const HeadShape& shape, int) const override {
    return identity_projections(projection_, shape);
  }
  std::optional<cpu::PointMap> point_map() const override {
    switch (form_) {
      case Form::eq5: return cpu::PointMap::softmax;
      case Form::joint: return cpu::PointMap::joint_softmax;
      case Form::two: break;
    }
    return cpu::PointMap::plus_minus_softmax;
  }
  LoopProjection loop_projection(Side side, const FeatureContext& context) const override {
    LoopProjection projection = loop_projection_of(side, projection_, context.heads, context.parameters);
    if (form_ == Form::joint) projection.scale = 2;
    return projection;
  }
  std::optional<LeadingMaps> leading_maps(const HeadShape& shape,
                                          const KernelParameters& parameters) const override {
    return leading_maps_of(projection_, shape, parameters);
  }
  double cost(const AttentionShape& shape) const override { return projection_cost(shape); }

private:
  ProjectionForm projection_;
  Form form_;
};

RegistryEntry trained_kernel(KernelInfo info, bool negation) {
  info.feature_width = negation ? "2d" : "d";
  info.trainable = true;
  info.parameters = {shared_info(), bias_info()};
  return normalised_linear(std::move(info), [negation](const KernelSpec& spec) {
    return std::make_unique<TrainedHedgehog>(projection_form(spec), negation);
  });
}

} // namespace

std::unique_ptr<FeatureMap> hedgehog_exp_map(const KernelSpec& spec) {
  return std::make_unique<TrainedHedgehog>(projection_form(spec), false);
}

RegistryEntry hedgehog_kernel() {
  KernelInfo info;
  info.name = "hedgehog";
  info.definition = "φ(x) = [exp y, exp −y], y = x·W + b, trained to match softmax";
  info.source = "Zhang et al. (2024), Eq. 6";
  info.published = "KL 0.172, 59.2 Matthews (CoLA, BERT-base)";
  return trained_kernel(std::move(info), true);
}

RegistryEntry hedgehog_exp_kernel() {
  KernelInfo info;
  info.name = "hedgehog-exp";
  info.definition = "φ(x) = exp y, y = x·W + b, trained to match softmax: hedgehog without the negation";
  info.source = "Zhang et al. (2024), Eq. 3";
  return trained_kernel(std::move(info), false);
}

RegistryEntry hedgehog_untrained_kernel() {
  KernelInfo info;
  info.name = "hedgehog-untrained";
  info.definition = "φ(x) = [exp x, exp −x]: hedgehog held at W = I, b = 0";
  info.feature_width = "2d";
  info.source = "Zhang et al. (2024), ablation \"HH no train\"";
  return normalised_linear(info, [](const KernelSpec&) { return std::make_unique<Hedgehog>(true); });
}

RegistryEntry hedgehog_softmax_kernel() {
  KernelInfo info;
  info.name = "hedgehog-softmax";
  info.definition = "φ(x) = [softmax y, softmax −y], y = x·W + b, trained to match softmax";
  info.feature_width = "2d";
  info.source = "Zhang et al. (2024), Eq. 5 with Eq. 6";
  info.trainable = true;
  info.query_map = info.key_map = {.bounded = true};
  info.parameters = {
      shared_info(), bias_info(),
      choice_info("form", "two: [softmax y, softmax −y]; eq5: softmax y; joint: softmax [2y, −2y]",
                  {"two", "eq5", "joint"})};
  RegistryEntry entry =
      normalised_linear(info, [](const KernelSpec& spec) { return std::make_unique<HedgehogSoftmax>(spec); });
  entry.info_of = [usual = entry.info](const KernelSpec& spec) {
    KernelInfo own = usual;
    const Form form = form_parameter(spec);
    if (form == Form::eq5) {
      own.definition = "φ(x) = softmax y, y = x·W + b, trained to match softmax";
      own.feature_width = "d";
    } else if (form == Form::joint) {
      own.definition = "φ(x) = softmax [2y, −2y], y = x·W + b, trained to match softmax";
    }
    return own;
  };
  return entry;
}

} // namespace hydrascope
