#include "engine/run/quantities/attention_row.h"

#include <algorithm>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kWeightBytes = std::int64_t{32} << 20; // of a tile

class AttentionRowReading final : public Reading {
public:
  explicit AttentionRowReading(const AttentionRowKey& key) { result_.key = key; }

  bool taps(int layer) const override { return layer == result_.key.layer; }

  // The rows of many queries are computed in tiles, because only their mean is kept.
  void read(const LayerTap& layer) override {
    const AttentionInput& input = layer.input;
    const LayerKernel& kernel = layer.kernel();
    result_.derived_signed = !has_distributions(kernel.kernel->info());
    std::vector<std::int64_t> rows;
    if (result_.key.query) rows.push_back(token_index(*result_.key.query, input.q.size(2)));
    at::Tensor mask = query_mask(input);
    if (mask.defined()) mask = mask.to(at::kCPU);
    for (std::int64_t token = 0; !result_.key.query && token < input.q.size(2); ++token)
      if (!mask.defined() || mask[0][token].item<bool>()) rows.push_back(token);
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto row_bytes = input.q.size(1) * input.q.size(2) * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t tile = std::clamp<std::int64_t>(kWeightBytes / row_bytes, 1, count);
    at::Tensor sum;
    for (std::int64_t first = 0; first < count; first += tile) {
      if (layer.stop.stop_requested()) throw Cancelled();
      const auto some = std::span(rows).subspan(static_cast<std::size_t>(first),
                                                static_cast<std::size_t>(std::min(tile, count - first)));
      const at::Tensor indices = at::tensor(at::ArrayRef<std::int64_t>(some.data(), some.size()),
                                            input.q.options().dtype(at::kLong));
      const at::Tensor part =
          kernel.kernel->weights(input, kernel.parameters, indices).select(0, 0).to(at::kDouble).sum(1);
      sum = sum.defined() ? sum + part : part;
    }
    weights_ = sum / static_cast<double>(count);
  }

  void finish(const FinishedPass& pass, QuantityResults& results) override {
    pass.copies.add(weights_, [this, &results](Array weights) {
      result_.weights = std::move(weights);
      const AttentionRowKey key = result_.key;
      results.add(key, std::move(result_));
    });
  }

private:
  AttentionRowResult result_;
  at::Tensor weights_; // (h,N) float64, on the model's device
};

class AttentionRowQuantity final : public QuantityOf<AttentionRowKey> {
  void check_key(const AttentionRowKey& key, const RunShape& shape) const override {
    check_below("layer", key.layer, shape.layers, "layers");
    if (key.query) check_below("query", token_index(*key.query, shape.tokens), shape.tokens, "tokens");
  }
  std::unique_ptr<Reading> reading(const AttentionRowKey& key,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<AttentionRowReading>(key);
  }
};

} // namespace

const Quantity& quantity_of(const AttentionRowKey& /*key*/) {
  static const AttentionRowQuantity quantity;
  return quantity;
}

} // namespace hydrascope
