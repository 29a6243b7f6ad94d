#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/quantities/rollout.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

at::Tensor fuse_heads(const at::Tensor& weights, HeadFusion fusion) {
  switch (fusion) {
    case HeadFusion::min: return at::amin(weights, {1});
    case HeadFusion::max: return at::amax(weights, {1});
    case HeadFusion::mean: break;
  }
  return weights.mean(1);
}

} // namespace

at::Tensor rollout_factor(const at::Tensor& weights, std::int64_t first_row, HeadFusion fusion,
                          double discard) {
  if (!(discard >= 0 && discard < 1))
    throw UsageError("--discard", fmt::format("{} is not a share of each row", discard), "use 0 ≤ r < 1");
  constexpr double kTiny = 1e-30;
  // For a normalised kernel this divides by 1; for a signed one it gives |w| over the row sum.
  const at::Tensor magnitude = weights.to(at::kFloat).abs();
  at::Tensor fused = fuse_heads(magnitude / magnitude.sum(-1, true).clamp_min(kTiny), fusion);

  const std::int64_t tokens = fused.size(-1);
  const std::int64_t rows = fused.size(-2);
  const at::Tensor own_column =
      (at::arange(first_row, first_row + rows, fused.options().dtype(at::kLong))).unsqueeze(-1) ==
      at::arange(tokens, fused.options().dtype(at::kLong));
  const auto dropped = static_cast<std::int64_t>(std::floor(discard * static_cast<double>(tokens)));
  if (dropped > 0) {
    const at::Tensor lowest = std::get<1>(at::topk(fused, dropped, -1, /*largest=*/false));
    at::Tensor drop = at::zeros_like(fused, fused.options().dtype(at::kBool)).scatter_(-1, lowest, true);
    drop = drop & own_column.logical_not();
    drop.select(-1, 0).fill_(false);
    fused = fused.masked_fill(drop, 0.0);
  }
  const at::Tensor mixed = fused * 0.5 + own_column.to(at::kFloat) * 0.5;
  return mixed / mixed.sum(-1, true); // the sum is at least ½, from the diagonal
}

at::Tensor rollout(const std::vector<at::Tensor>& weights, HeadFusion fusion, double discard) {
  at::Tensor product;
  for (const at::Tensor& layer : weights) {
    const at::Tensor factor = rollout_factor(layer, 0, fusion, discard);
    product = product.defined() ? factor.matmul(product) : factor;
  }
  return product;
}

namespace {

constexpr std::int64_t kFactorBytes = std::int64_t{32} << 20; // of a tile of weights

// The heads to fuse: the key's, or all where the kernel has none of these; without muted ones, may be empty.
std::vector<std::int64_t> fused_heads(const RolloutKey& rollout, const std::vector<int>& muted,
                                      std::int64_t heads, std::int64_t kernel_heads) {
  const std::vector<bool> unmuted = unmuted_heads(muted, heads, kernel_heads);
  const bool has_chosen = std::ranges::any_of(rollout.heads, [&](int head) { return head < kernel_heads; });
  std::vector<std::int64_t> fused;
  for (std::int64_t head = 0; head < kernel_heads; ++head) {
    const bool chosen = !has_chosen || std::ranges::count(rollout.heads, head) > 0;
    if (chosen && unmuted[static_cast<std::size_t>(head)]) fused.push_back(head);
  }
  return fused;
}

// Multiplies the layers' factors as they arrive.
class RolloutReading final : public Reading {
public:
  explicit RolloutReading(const RolloutKey& key) { result_.key = key; }

  bool taps(int /*layer*/) const override { return true; }

  void read(const LayerTap& layer) override {
    const AttentionInput& input = layer.input;
    const LayerKernel& kernel = layer.kernel();
    const std::vector<int>& muted = layer.pass.muted[static_cast<std::size_t>(layer.layer)];
    const std::int64_t tokens = input.q.size(2);
    const std::int64_t kernel_heads = kernel.kernel->weight_heads(shape_of(input));
    result_.magnitudes |= !has_distributions(kernel.kernel->info());
    result_.kernel_heads.push_back(static_cast<int>(kernel_heads));
    const std::vector<std::int64_t> heads = fused_heads(result_.key, muted, input.q.size(1), kernel_heads);
    if (heads.empty()) { // only the residual stream passes: Ā = I
      if (!product_.defined()) product_ = at::eye(tokens, input.q.options().dtype(at::kFloat)).unsqueeze(0);
      return;
    }
    const auto row_bytes = input.q.size(1) * tokens * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t tile = std::clamp<std::int64_t>(kFactorBytes / row_bytes, 1, tokens);
    std::vector<at::Tensor> tiles;
    for (std::int64_t first = 0; first < tokens; first += tile) {
      const at::Tensor rows =
          at::arange(first, std::min(tokens, first + tile), input.q.options().dtype(at::kLong));
      at::Tensor weights = kernel.kernel->weights(input, kernel.parameters, rows);
      if (static_cast<std::int64_t>(heads.size()) < kernel_heads)
        weights = weights.index_select(1, at::tensor(heads, weights.options().dtype(at::kLong)));
      tiles.push_back(rollout_factor(weights, first, result_.key.fusion, result_.key.discard));
    }
    const at::Tensor factor = at::cat(tiles, 1);
    product_ = product_.defined() ? factor.matmul(product_) : factor;
  }

  void finish(const FinishedPass& pass, QuantityResults& results) override {
    pass.copies.add(product_, [this, &results](Array weights) {
      result_.weights = std::move(weights);
      const RolloutKey key = result_.key;
      results.add(key, std::move(result_));
    });
  }

private:
  RolloutResult result_;
  at::Tensor product_; // (1,N,N)
};

class RolloutQuantity final : public QuantityOf<RolloutKey> {
  std::string key_missing_in(const RolloutKey& /*key*/, const CaptureInfo& capture) const override {
    return capture.queries > 0 ? "rollout multiplies layers whose queries are also their keys" : "";
  }
  void check_key(const RolloutKey& key, const RunShape& shape) const override {
    for (const int head : key.heads) check_below("--head", head, shape.heads, "heads");
    if (!(key.discard >= 0 && key.discard < 1))
      throw UsageError(fmt::format("--discard {}", key.discard), "not a share of each row", "use 0 ≤ r < 1");
  }
  double key_bytes(const RolloutKey& /*key*/, const ModelInfo& /*model*/,
                   std::int64_t tokens) const override {
    return 4.0 * static_cast<double>(tokens) * static_cast<double>(tokens) * sizeof(float);
  }
  std::unique_ptr<Reading> reading(const RolloutKey& key, const PlanContext& /*context*/) const override {
    return std::make_unique<RolloutReading>(key);
  }
};

} // namespace

const Quantity& quantity_of(const RolloutKey& /*key*/) {
  static const RolloutQuantity quantity;
  return quantity;
}

} // namespace hydrascope
