#include "engine/run/quantities/similar_heads.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

void accumulate(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) { // over rows and keys
  return (a * b).sum({2, 3}, false, at::kDouble);
}

} // namespace

at::Tensor jensen_shannon(const at::Tensor& weights, const at::Tensor& others) {
  const at::Tensor middle = (weights + others) * 0.5;
  // As H(m) − ½ H(p) − ½ H(q): exactly 0 for equal rows, and without a logarithm of 0.
  const at::Tensor terms =
      (at::xlogy(weights, weights) + at::xlogy(others, others)) * 0.5 - at::xlogy(middle, middle);
  return terms.sum({-1}, false, at::kDouble).clamp_min(0.0);
}

void HeadDistances::add(const at::Tensor& weights, const at::Tensor& chosen, const at::Tensor& real_rows) {
  if (metric_ == HeadMetric::jensen_shannon) {
    at::Tensor rows = jensen_shannon(weights, chosen);
    if (real_rows.defined()) rows = at::where(real_rows.to(at::kBool).unsqueeze(1), rows, 0.0);
    accumulate(sum_, rows.sum(-1));
    accumulate(rows_, real_rows.defined()
                          ? real_rows.sum(1, true).to(at::kDouble)
                          : at::full({weights.size(0), 1}, static_cast<double>(weights.size(2)),
                                     weights.options().dtype(at::kDouble)));
    return;
  }
  // The weights of masked rows are 0 and add nothing.
  accumulate(products_, dot(weights, chosen));
  accumulate(own_, dot(weights, weights));
  accumulate(chosen_, dot(chosen, chosen));
}

at::Tensor HeadDistances::value() const {
  if (metric_ == HeadMetric::jensen_shannon) return sum_ / rows_;
  return (1.0 - products_ / (own_ * chosen_).sqrt()).clamp_min(0.0);
}

namespace {

constexpr std::int64_t kRowsBytes = std::int64_t{16} << 20;

// `inputs` by layer. Sets `values`, (h) of each layer, in place of the result's distances; undefined where
// they are not defined. Computes weights in tiles of query rows, layer by layer. Throws Cancelled.
SimilarHeads similar_heads(HeadIndex head, const std::vector<AttentionInput>& inputs,
                           std::span<const LayerKernel> layers, const std::stop_token& stop,
                           std::vector<at::Tensor>& values) {
  const AttentionInput& first = inputs.front();
  const std::int64_t heads = first.q.size(1), tokens = first.q.size(2);
  const auto chosen_layer = static_cast<std::size_t>(head.layer);
  const auto whole_heads = [&](std::size_t layer) {
    return layers[layer].kernel->weight_heads(shape_of(inputs[layer])) == heads;
  };
  SimilarHeads similar;
  similar.head = head;
  // One metric for all layers, so that the numbers are comparable.
  for (const LayerKernel& layer : layers)
    if (!has_distributions(layer.kernel->info())) similar.metric = HeadMetric::cosine;

  std::vector<HeadDistances> distances(layers.size(), HeadDistances(similar.metric));
  const std::int64_t step = std::clamp<std::int64_t>(
      kRowsBytes / (heads * tokens * static_cast<std::int64_t>(sizeof(float))), 1, tokens);
  for (std::int64_t begin = 0; whole_heads(chosen_layer) && begin < tokens; begin += step) {
    const at::Tensor rows =
        at::arange(begin, std::min(tokens, begin + step), first.q.options().dtype(at::kLong));
    const at::Tensor real_rows = take_mask(query_mask(first), rows);
    const auto weights_of = [&](std::size_t layer) {
      return layers[layer].kernel->weights(inputs[layer], layers[layer].parameters, rows);
    };
    const at::Tensor chosen = weights_of(chosen_layer).narrow(1, head.head, 1);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      if (stop.stop_requested()) throw Cancelled();
      if (whole_heads(layer)) distances[layer].add(weights_of(layer), chosen, real_rows);
    }
  }
  similar.distances.shape = {static_cast<std::int64_t>(layers.size()), heads};
  values.resize(layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    if (whole_heads(layer) && whole_heads(chosen_layer))
      values[layer] = distances[layer].value().select(0, 0);
  return similar;
}

// Keeps the input of every layer, because the chosen head is compared with earlier layers too.
class SimilarHeadsReading final : public Reading {
public:
  explicit SimilarHeadsReading(const SimilarHeadsKey& key) : key_(key) {}

  bool taps(int /*layer*/) const override { return true; }
  void read(const LayerTap& layer) override { inputs_.push_back(layer.input); }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    std::vector<at::Tensor> values;
    similar_ = similar_heads(key_.head, inputs_, pass.pass.layers, pass.control.stop, values);
    std::vector<float>& all = similar_.distances.values;
    for (const at::Tensor& of_layer : values) {
      if (of_layer.defined())
        pass.copies.add(of_layer, [&all](const Array& row) {
          all.insert(all.end(), row.values.begin(), row.values.end());
        });
      else
        pass.copies.then([&all, heads = similar_.distances.shape.back()] {
          all.insert(all.end(), static_cast<std::size_t>(heads), std::numeric_limits<float>::quiet_NaN());
        });
    }
    pass.copies.then([this, &results] { results.add(key_, std::move(similar_)); });
  }

private:
  SimilarHeadsKey key_;
  SimilarHeads similar_;
  std::vector<AttentionInput> inputs_;
};

class SimilarHeadsQuantity final : public QuantityOf<SimilarHeadsKey> {
  void check_key(const SimilarHeadsKey& key, const RunShape& shape) const override {
    check_below("layer", key.head.layer, shape.layers, "layers");
    check_below("head", key.head.head, shape.heads, "heads");
  }
  double key_bytes(const SimilarHeadsKey& /*key*/, const ModelInfo& model,
                   std::int64_t tokens) const override {
    return 4.0 * model.layers * static_cast<double>(tokens) * model.width * sizeof(float);
  }
  std::unique_ptr<Reading> reading(const SimilarHeadsKey& key,
                                   const PlanContext& /*context*/) const override {
    return std::make_unique<SimilarHeadsReading>(key);
  }
};

} // namespace

const Quantity& quantity_of(const SimilarHeadsKey& /*key*/) {
  static const SimilarHeadsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
