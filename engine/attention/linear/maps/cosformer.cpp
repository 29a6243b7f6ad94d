// φ(x) = [ReLU(x) cos(π i/2M), ReLU(x) sin(π i/2M)], i the token's rank, M the number of tokens (Qin et al.
// 2022, Eq. 10): weights decrease with the distance of the tokens.
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

class CosFormer final : public FeatureMap {
public:
  explicit CosFormer(const KernelSpec& spec) : spec_(spec), length_(positive_parameter(spec, "m")) {}

  std::int64_t width(std::int64_t head_width) const override { return 2 * head_width; }

  std::string refusal(const AttentionShape& shape) const override {
    if (!length_ || shape.has_mask || shape.tokens <= *length_) return {};
    return too_many_tokens(shape.tokens);
  }

  std::string growth_refusal() const override {
    if (length_) return {};
    return "M, the number of tokens, is not known while a sequence grows: fix it, as in cosformer:m=2048";
  }

  at::Tensor features(const at::Tensor& x, Side, const FeatureContext& context) const override {
    const at::Tensor angle = angles(x, x.size(2), context), positive = at::relu(x);
    // The last token's cosine is 0: rounding must not make it negative.
    const at::Tensor cosine = angle.cos().clamp_min(0).to(x.scalar_type());
    return at::cat({positive * cosine, positive * angle.sin().to(x.scalar_type())}, -1);
  }

  std::optional<cpu::PointMap> point_map() const override { return cpu::PointMap::relu_token_weighted; }
  LoopProjection loop_projection(Side, const FeatureContext& context) const override {
    const at::Tensor angle = angles(at::empty({0}, context.device), context.tokens, context);
    LoopProjection projection;
    projection.token_weights = at::cat({angle.cos().clamp_min(0), angle.sin()}, -1).squeeze(1);
    return projection;
  }

private:
  std::string too_many_tokens(std::int64_t tokens) const {
    return fmt::format("{} tokens are more than m={}, and beyond m weights turn negative", tokens, *length_);
  }

  // Throws UsageError for more tokens than m.
  void require_length(std::int64_t tokens) const {
    if (length_ && tokens > *length_)
      throw UsageError(spec_.text(), too_many_tokens(tokens), "raise m or leave it out");
  }

  // π i/2M of the context's `count` tokens, (B or 1, 1, R, 1), in double precision on the device of `like`.
  at::Tensor angles(const at::Tensor& like, std::int64_t count, const FeatureContext& context) const {
    const auto options = like.options().dtype(at::kDouble);
    constexpr double quarter_turn = std::numbers::pi / 2;
    if (!context.mask.defined()) { // also where there is one, but every token is real
      require_length(context.tokens);
      const at::Tensor rows = rows_or_all(context.rows, count, like);
      const std::int64_t length = length_.value_or(context.tokens);
      return ((rows + 1).to(options) * (quarter_turn / static_cast<double>(length))).view({1, 1, -1, 1});
    }
    const at::Tensor ranks = at::cumsum(context.mask, 1, at::kDouble);
    const at::Tensor counts = ranks.slice(1, -1).clamp_min(1);
    if (length_ && context.tokens > *length_) require_length(counts.max().to(at::kLong).item<std::int64_t>());
    const at::Tensor own = take_mask(ranks, context.rows);
    const at::Tensor angle =
        length_ ? own * (quarter_turn / static_cast<double>(*length_)) : own * quarter_turn / counts;
    return angle.unsqueeze(1).unsqueeze(-1);
  }

  KernelSpec spec_;
  std::optional<std::int64_t> length_;
};

} // namespace

RegistryEntry cosformer_kernel() {
  KernelInfo info;
  info.name = "cosformer";
  info.definition = "φ(x) = [ReLU(x) cos(π i/2M), ReLU(x) sin(π i/2M)], i the token's rank of M";
  info.feature_width = "2d";
  info.positional = true;
  info.source = "Qin et al. (2022), Eq. 10";
  info.published = "39.9 Matthews (CoLA, BERT-base)";
  info.parameters = {{.name = "m",
                      .kind = ParameterInfo::Kind::number,
                      .meaning = "length M that ranks are divided by, at least the number of tokens",
                      .initial = "the number of real tokens",
                      .range = [](const LayerShape& shape) {
                        return ParameterRange{
                            .least = shape.tokens, .most = 4 * shape.tokens, .initial = shape.tokens};
                      }}};
  return normalised_linear(info, [](const KernelSpec& spec) { return std::make_unique<CosFormer>(spec); });
}

} // namespace hydrascope
