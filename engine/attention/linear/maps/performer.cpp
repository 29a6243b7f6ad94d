// FAVOR+: φ(x) = exp(ω_iᵀ x̂ − ‖x̂‖²/2)/√m, x̂ = x/d^¼, orthogonal ω (Choromanski et al. 2021, Eq. 4 and
// section 2.4).
#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sign.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

// ω (m,d): rows orthogonal in blocks of d, their lengths those of independent Gaussian vectors.
at::Tensor orthogonal_gaussian(std::int64_t features, std::int64_t width, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  std::vector<at::Tensor> blocks;
  for (std::int64_t rows = 0; rows < features; rows += width) {
    const auto [orthogonal, triangle] = at::linalg_qr(at::randn({width, width}, generator, options));
    // The signs make the directions uniform: those of the decomposition alone are not.
    blocks.push_back((orthogonal * at::sign(triangle.diagonal())).t());
  }
  const at::Tensor directions = at::cat(blocks, 0).slice(0, 0, features);
  const at::Tensor lengths =
      at::linalg_vector_norm(at::randn({features, width}, generator, options), 2, at::IntArrayRef({1}), true);
  return (directions * lengths).to(at::kFloat);
}

std::int64_t default_features(std::int64_t head_width) {
  const auto d = static_cast<double>(head_width);
  return std::max(head_width, static_cast<std::int64_t>(std::floor(d * std::log(d))));
}

ParameterInfo features_info() {
  return {.name = "features",
          .kind = ParameterInfo::Kind::number,
          .meaning = "m, the number of random features",
          .initial = "max(d, ⌊d ln d⌋)",
          .range = [](const LayerShape& shape) {
            const std::int64_t usual = default_features(shape.head_width);
            return ParameterRange{.least = 1, .most = std::min(4 * usual, most_features), .initial = usual};
          }};
}

class Performer final : public FeatureMap {
public:
  explicit Performer(const KernelSpec& spec)
      : features_(positive_parameter(spec, "features", most_features)), seed_(seed_parameter(spec)) {}

  bool logarithmic() const override { return true; }
  std::int64_t width(std::int64_t head_width) const override {
    return features_.value_or(default_features(head_width));
  }

  KernelParameters initial_parameters(const HeadShape& shape, int layer) const override {
    const std::int64_t features = width(shape.head_width);
    return {{"omega", orthogonal_gaussian(features, shape.head_width, layer_seed(seed_, layer))}};
  }
  std::vector<std::string> fixed_parameters() const override { return {"omega"}; }

  at::Tensor features(const at::Tensor& x, Side side, const FeatureContext& context) const override {
    const at::Tensor scaled = x * std::pow(static_cast<double>(x.size(3)), -0.25);
    const at::Tensor projected = at::matmul(scaled, omega(x.size(3), context).to(x.scalar_type()).t());
    const double logarithm = 0.5 * std::log(static_cast<double>(projected.size(3)));
    // A query's ‖x̂‖²/2 is a factor of its whole row and cancels in the quotient: it would only cost
    // precision.
    if (side == Side::query) return projected - logarithm;
    return projected - (0.5 * (scaled * scaled).sum(-1, true) + logarithm);
  }

  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::exponential; }
  LoopProjection loop_projection(Side side, const FeatureContext& context) const override {
    const auto d = static_cast<double>(context.heads.head_width);
    // The constant 1/√m of both sides cancels.
    return {.weight = omega(context.heads.head_width, context).t().unsqueeze(0),
            .scale = std::pow(d, -0.25),
            .half_square = side == Side::key ? 0.5 / std::sqrt(d) : 0};
  }

  double cost(const AttentionShape& shape) const override {
    return 2.0 * static_cast<double>(shape.tokens) * model_width(shape) *
           static_cast<double>(width(shape.head_width));
  }

private:
  at::Tensor omega(std::int64_t head_width, const FeatureContext& context) const {
    const auto found = context.parameters.find("omega");
    if (found == context.parameters.end() || !found->second.defined())
      return initial_parameters(context.heads, 0).at("omega").to(context.device);
    const at::Tensor& given = found->second;
    if (given.dim() != 2 || given.size(1) != head_width || given.size(0) < 1)
      throw UsageError("omega", fmt::format("its shape is ({})", fmt::join(given.sizes().vec(), ",")),
                       fmt::format("for this input it is (m,{})", head_width));
    return given;
  }

  std::optional<std::int64_t> features_;
  std::uint64_t seed_;
};

} // namespace

RegistryEntry performer_kernel() {
  KernelInfo info;
  info.name = "performer";
  info.definition = "φ(x) = exp(ω_iᵀ x̂ − ‖x̂‖²/2)/√m, x̂ = x/d^¼, random orthogonal ω";
  info.feature_width = "m";
  info.source = "Choromanski et al. (2021), Eq. 4";
  info.published = "24.7 Matthews (CoLA, BERT-base)";
  info.parameters = {features_info(), seed_info()};
  return normalised_linear(info, [](const KernelSpec& spec) { return std::make_unique<Performer>(spec); });
}

} // namespace hydrascope
