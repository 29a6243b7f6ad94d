#include "engine/run/quantities/weights.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/tokens.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/reading.h"

namespace hydrascope {

at::Tensor value_norms(const AttentionInput& input, const at::Tensor& output_weight, std::int64_t heads) {
  const at::Tensor v = resplit(select_tokens(input.v.to(at::kFloat), real_mask(input)), heads);
  const std::int64_t width = output_weight.size(1);
  // ‖v W‖² = v (W Wᵀ) vᵀ: one w×w matrix per head instead of D numbers per token and head.
  const at::Tensor columns =
      output_weight.to(at::kFloat).t().reshape({heads, width / heads, output_weight.size(0)});
  const at::Tensor gram = at::matmul(columns, columns.transpose(1, 2)); // (heads,w,w)
  return (at::matmul(v, gram.unsqueeze(0)) * v).sum(-1).clamp_min(0.0).sqrt();
}

namespace {

constexpr std::int64_t long_sequence = 2048, few_of = 8;

// What a half type's rounding changes at most, as a share of the largest output: the tolerance of the
// kernels' tests.
double rounding_share(const at::ScalarType type) {
  if (type == at::kBFloat16) return 2e-2;
  return type == at::kHalf ? 4e-3 : 0;
}

std::int64_t row_count(const WeightsKey& key, std::int64_t tokens) {
  if (!key.rows.empty()) return std::ssize(key.rows);
  return key.most_rows > 0 ? std::min(key.most_rows, tokens) : tokens;
}

std::vector<std::int64_t> rows_of(const WeightsKey& key, std::int64_t tokens) {
  const std::int64_t count = row_count(key, tokens);
  std::vector<std::int64_t> rows;
  for (const std::int64_t row : key.rows) rows.push_back(token_index(row, tokens));
  if (rows.empty())
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * tokens / count);
  return rows;
}

class WeightsReading final : public Reading {
public:
  WeightsReading(WeightsKey key, LayerKernel kernel) : key_(std::move(key)), kernel_(std::move(kernel)) {}

  bool teacher_forced() const override { return key_.teacher_forced; }
  bool taps(int layer) const override { return layer == key_.layer; }
  void add_kernels(std::vector<const LayerKernel*>& kernels) const override { kernels.push_back(&kernel_); }

  void read(const LayerTap& layer) override {
    const AttentionInput& input = layer.input;
    const KernelInfo& info = kernel_.kernel->info();
    result_.layer = key_.layer;
    result_.kernel = kernel_.kernel->spec();
    result_.teacher_forced = key_.teacher_forced;
    result_.derived_signed = !has_distributions(info);
    result_.untrained = info.trainable && !kernel_.own_parameters;
    result_.rows = rows_of(key_, input.q.size(2));
    const at::Tensor rows = at::tensor(result_.rows, input.q.options().dtype(at::kLong));
    at::Tensor weights = kernel_.kernel->weights(input, kernel_.parameters, rows);
    result_.value_weighted = key_.value_weighted;
    if (key_.value_weighted)
      weights = weights.abs() * value_norms(input, layer.output_weight(), weights.size(1)).unsqueeze(2);
    weights_ = weights.select(0, 0);
    // The output of all rows takes far longer than the weights of a few of a long sequence.
    const bool few = rows.size(0) * few_of < input.q.size(2) && input.q.size(2) > long_sequence;
    result_.check = few ? std::numeric_limits<double>::quiet_NaN()
                        : kernel_.kernel->weights_check(input, kernel_.parameters, rows);
    constexpr double of_arithmetic = 1e-3; // a smaller difference is none in any type
    if (const double share = rounding_share(input.q.scalar_type());
        share > 0 && result_.check > of_arithmetic)
      result_.rounding =
          share * kernel_.kernel->run(input, kernel_.parameters).out.abs().max().item<double>();
  }

  void finish(const FinishedPass& pass, QuantityResults& results) override {
    const LayerRun& layer = pass.result.layers[static_cast<std::size_t>(key_.layer)];
    if (!key_.teacher_forced && result_.kernel == layer.kernel) result_.untrained = layer.untrained;
    pass.copies.add(weights_, [this, &results](Array weights) {
      result_.weights = std::move(weights);
      results.add(key_, std::move(result_));
    });
  }

private:
  WeightsKey key_;
  LayerKernel kernel_;
  WeightsResult result_;
  at::Tensor weights_; // (h,R,N), on the model's device
};

class WeightsQuantity final : public QuantityOf<WeightsKey> {
  std::string key_missing_in(const WeightsKey& key, const CaptureInfo& capture) const override {
    return key.value_weighted && !capture.has_output_weights ? "it needs W_o, which the capture lacks" : "";
  }
  void check_key(const WeightsKey& key, const RunShape& shape) const override {
    check_below("layer", key.layer, shape.layers, "layers");
    for (const std::int64_t row : key.rows)
      check_below("row", token_index(row, shape.tokens), shape.tokens, "tokens");
  }
  double key_bytes(const WeightsKey& key, const ModelInfo& model, std::int64_t tokens) const override {
    const auto rows = static_cast<double>(row_count(key, tokens));
    return 2.0 * model.heads * rows * static_cast<double>(tokens) * sizeof(float);
  }
  bool key_compares(const WeightsKey& key, const Schedule& schedule) const override {
    return is_another_kernel(schedule, key.layer, key.kernel);
  }
  std::unique_ptr<Reading> reading(const WeightsKey& key, const PlanContext& context) const override {
    return std::make_unique<WeightsReading>(key, context.kernel(key.teacher_forced, key.layer, key.kernel));
  }
};

} // namespace

const Quantity& quantity_of(const WeightsKey& /*key*/) {
  static const WeightsQuantity quantity;
  return quantity;
}

} // namespace hydrascope
