// φ(x) = [1, x̂, x̂⊗x̂/√2], x̂ = x/d^¼: the second-degree polynomial of exp(q·k/√d) (Zhang et al. 2024, section
// 4).
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/where.h>

#include "engine/attention/linear/maps/known_maps.h"

namespace hydrascope {
namespace {

class Taylor final : public FeatureMap {
public:
  std::int64_t width(std::int64_t head_width) const override {
    return 1 + head_width + head_width * head_width;
  }

  std::int64_t repeated_features(std::int64_t head_width) const override {
    return head_width * (head_width - 1) / 2;
  }

  // x̂_a x̂_b and x̂_b x̂_a become one feature with a factor √2: d(d+1)/2 products instead of d².
  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    const std::int64_t head_width = x.size(3);
    const at::Tensor scaled = x * std::pow(static_cast<double>(head_width), -0.25);
    const at::Tensor pairs = at::triu_indices(head_width, head_width, 0, x.options().dtype(at::kLong));
    const at::Tensor first = pairs.select(0, 0), second = pairs.select(0, 1);
    const at::Tensor factors =
        at::where(first == second, at::full({}, std::sqrt(0.5), x.options()), at::ones({}, x.options()));
    const at::Tensor squares = scaled.index_select(3, first) * factors * scaled.index_select(3, second);
    return at::cat({at::ones({x.size(0), x.size(1), x.size(2), 1}, x.options()), scaled, squares}, -1);
  }

  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::taylor; }
  LoopProjection loop_projection(Side, const FeatureContext& context) const override {
    return {.scale = std::pow(static_cast<double>(context.heads.head_width), -0.25)};
  }

  bool products_are_cheaper() const override { return true; }
  at::Tensor products(const at::Tensor& query, const at::Tensor& key) const override {
    const at::Tensor scores =
        at::matmul(query / std::sqrt(static_cast<double>(query.size(3))), key.transpose(2, 3));
    return 1 + scores + 0.5 * scores * scores;
  }
};

} // namespace

std::unique_ptr<FeatureMap> taylor_map() { return std::make_unique<Taylor>(); }

RegistryEntry taylor_kernel() {
  KernelInfo info;
  info.name = "taylor";
  info.definition = "φ(q)·φ(k) = 1 + s + s²/2, s = q·k/√d";
  info.feature_width = "1+d+d²";
  info.source = "Zhang et al. (2024), section 4";
  info.published = "58.4 Matthews (CoLA, BERT-base)";
  info.query_map = info.key_map = {.takes_negatives = true};
  return normalised_linear(info, [](const KernelSpec&) { return taylor_map(); });
}

} // namespace hydrascope
