#include "engine/run/quantities/vectors.h"

#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

// Numbers of a result while they are on the model's device, and where they go.
using VectorsOnDevice = std::vector<std::pair<Array VectorsResult::*, at::Tensor>>;

// All vectors except the gradient: appends them to `vectors`. Throws UsageError for a head that the kernel
// does not have.
VectorsResult read_vectors(const VectorsKey& key, const LayerKernel& layer, const AttentionInput& input,
                           VectorsOnDevice& vectors) {
  const Kernel& kernel = *layer.kernel;
  const std::int64_t heads = kernel.weight_heads(shape_of(input));
  if (key.head < 0 || key.head >= heads)
    throw UsageError(fmt::format("head {}", key.head),
                     fmt::format("{} has {} heads", kernel.spec().text(), heads),
                     fmt::format("use 0 to {}", heads - 1));
  VectorsResult result;
  result.layer = key.layer;
  result.kernel = kernel.spec();
  result.teacher_forced = key.teacher_forced;
  result.untrained = kernel.info().trainable && !layer.own_parameters;
  result.head = key.head;
  result.query = token_index(key.query, input.q.size(2));
  const at::Tensor mask = real_mask(input);
  const auto heads_of = [&](const at::Tensor& x) {
    return resplit(select_tokens(x, mask), heads).select(0, 0);
  };
  vectors.emplace_back(&VectorsResult::q, heads_of(input.q));
  vectors.emplace_back(&VectorsResult::k, heads_of(input.k));

  const at::Tensor row = at::tensor({result.query}, input.q.options().dtype(at::kLong));
  // In causal attention every query has a global vector of its own.
  const auto global = input.causal ? std::nullopt : kernel.global_vector(input, layer.parameters, row);
  const auto features = features_of(kernel, input, layer.parameters, global ? at::Tensor() : row, {});
  if (!features) return result;
  // A Hydra kernel's features are one row over all heads.
  const std::int64_t head = features->query.size(1) == 1 ? 0 : key.head;
  const at::Tensor query = features->query.select(0, 0).select(0, head);
  result.rescaled = features->rescaled;
  vectors.emplace_back(&VectorsResult::key_features, features->key.select(0, 0).select(0, head));
  vectors.emplace_back(&VectorsResult::query_feature, query.select(0, global ? result.query : 0));
  if (!global) return result;
  vectors.emplace_back(&VectorsResult::query_features, query);
  vectors.emplace_back(&VectorsResult::values, to_rows(select_tokens(input.v, mask)).select(0, 0));
  vectors.emplace_back(&VectorsResult::global, global->vector.select(0, 0));
  return result;
}

class VectorsReading final : public Reading {
public:
  VectorsReading(VectorsKey key, LayerKernel kernel) : key_(std::move(key)), kernel_(std::move(kernel)) {}

  bool teacher_forced() const override { return key_.teacher_forced; }
  bool needs_gradient(int layer) const override {
    return key_.gradient && !key_.teacher_forced && layer == key_.layer;
  }
  bool taps(int layer) const override { return layer == key_.layer; }
  void add_kernels(std::vector<const LayerKernel*>& kernels) const override { kernels.push_back(&kernel_); }
  void read(const LayerTap& layer) override { result_ = read_vectors(key_, kernel_, layer.input, vectors_); }

  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const auto gradient = pass.gradients.find(key_.layer);
    const bool global = !vectors_.empty() && vectors_.back().first == &VectorsResult::global;
    if (needs_gradient(key_.layer) && gradient != pass.gradients.end() && global)
      vectors_.emplace_back(&VectorsResult::gradient,
                            gradient->second.select(0, 0).select(1, result_.query).flatten());
    for (const auto& [place, vectors] : vectors_)
      pass.copies.add(vectors, [this, to = place](Array numbers) { result_.*to = std::move(numbers); });
    pass.copies.then([this, &results] { results.add(key_, std::move(result_)); });
  }

private:
  VectorsKey key_;
  LayerKernel kernel_;
  VectorsResult result_;
  VectorsOnDevice vectors_;
};

class VectorsQuantity final : public QuantityOf<VectorsKey> {
  void check_key(const VectorsKey& key, const RunShape& shape) const override {
    check_below("layer", key.layer, shape.layers, "layers");
    check_below("query", token_index(key.query, shape.tokens), shape.tokens, "tokens");
  }
  double key_bytes(const VectorsKey& key, const ModelInfo& model, std::int64_t tokens) const override {
    double features = 0; // per token
    if (key.kernel) {
      const double head_width = static_cast<double>(model.width) / model.heads;
      features = key.kernel->name == "taylor" ? 1 + head_width + head_width * head_width : 4 * head_width;
    }
    return static_cast<double>(tokens) * (6.0 * model.width + 2.0 * features) * sizeof(float);
  }
  bool key_compares(const VectorsKey& key, const Schedule& schedule) const override {
    return is_another_kernel(schedule, key.layer, key.kernel);
  }
  std::unique_ptr<Reading> reading(const VectorsKey& key, const PlanContext& context) const override {
    return std::make_unique<VectorsReading>(key, context.kernel(key.teacher_forced, key.layer, key.kernel));
  }
};

} // namespace

const Quantity& quantity_of(const VectorsKey& /*key*/) {
  static const VectorsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
