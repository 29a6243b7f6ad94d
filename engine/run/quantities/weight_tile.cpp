#include "engine/run/quantities/weight_tile.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/reading.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kWeightsAtOnce = std::int64_t{8} << 20;

// The entry of largest absolute value in each window, from the largest and the smallest entry.
at::Tensor by_magnitude(const at::Tensor& largest, const at::Tensor& smallest) {
  return at::where(largest >= -smallest, largest, smallest);
}

at::Tensor pooled_columns(const at::Tensor& rows, std::int64_t columns) { // (h,r,C) → (h,r,columns)
  if (rows.size(2) == columns) return rows;
  const auto largest = [&](const at::Tensor& x) {
    return std::get<0>(at::adaptive_max_pool1d(x, {columns}));
  };
  return by_magnitude(largest(rows), -largest(-rows));
}

at::Tensor fused(const at::Tensor& weights, HeadFusion fusion) { // (h,r,C) → (1,r,C)
  switch (fusion) {
    case HeadFusion::min: return weights.amin(0, true);
    case HeadFusion::max: return weights.amax(0, true);
    case HeadFusion::mean: break;
  }
  return weights.mean(at::IntArrayRef{0}, true);
}

// The first entry of a cell's window, where `cells` cells divide `count` entries.
std::int64_t window(std::int64_t cell, std::int64_t cells, std::int64_t count) {
  return cell * count / cells;
}

// The key with its counts filled in and at most one cell per weight. Throws UsageError for rows, columns and
// heads that do not exist.
TileKey complete_tile(TileKey key, std::int64_t tokens, std::int64_t heads) {
  const auto check = [](const char* what, std::int64_t first, std::int64_t& count, std::int64_t limit) {
    if (count == 0) count = limit - first;
    if (first < 0 || count < 1 || first + count > limit)
      throw UsageError(fmt::format("{} {} to {}", what, first, first + count - 1),
                       fmt::format("there are {}", limit), "ask for a part of them");
  };
  check("rows", key.first_row, key.row_count, tokens);
  check("columns", key.first_column, key.column_count, tokens);
  for (const int head : key.heads) {
    if (head < 0 || head >= heads)
      throw UsageError(fmt::format("head {}", head), fmt::format("{} has {} heads", key.kernel.text(), heads),
                       fmt::format("use 0 to {}", heads - 1));
  }
  key.rows = std::clamp<std::int64_t>(key.rows, 1, key.row_count);
  key.columns = std::clamp<std::int64_t>(key.columns, 1, key.column_count);
  return key;
}

// Some heads of a layer, where the weights of a head depend on that head alone.
struct SomeHeads {
  AttentionInput input;
  KernelParameters parameters;
};
std::optional<SomeHeads> some_heads(const AttentionInput& input, const LayerKernel& layer,
                                    const std::vector<std::int64_t>& chosen) {
  const Kernel& kernel = *layer.kernel;
  const std::int64_t heads = input.q.size(1);
  const bool fewer = !chosen.empty() && static_cast<std::int64_t>(chosen.size()) < heads;
  const KernelInfo& info = kernel.info();
  if (!fewer || !info.normalised || info.family == KernelFamily::own ||
      kernel.weight_heads(shape_of(input)) != heads)
    return std::nullopt;
  const at::Tensor index = at::tensor(chosen, input.q.options().dtype(at::kLong));
  SomeHeads some{input, layer.parameters};
  for (at::Tensor* const part : {&some.input.q, &some.input.k, &some.input.v})
    *part = part->index_select(1, index);
  some.input.layer_input = at::Tensor(); // only of kernels that are not normalised
  // Of grouped heads each chosen one has keys, and a map of keys, of its own.
  const at::Tensor groups = input.key_heads == 0 ? index : index.floor_divide(heads / input.key_heads);
  some.input.key_heads = 0;
  for (auto& [name, parameter] : some.parameters) {
    const bool per_head = name.starts_with("query_map.") || name.starts_with("key_map."); // (H or H_k,…)
    if (!per_head && name != "omega") return std::nullopt;
    if (per_head) parameter = parameter.index_select(0, parameter.size(0) == heads ? index : groups);
  }
  return some;
}

// Sets `values` in place of the result's. Holds at most about 32 MB of weights at once. `output_weight` (W_o)
// is used for value-weighted tiles alone.
TileResult read_tile(const TileKey& asked, const LayerKernel& layer, const AttentionInput& input,
                     const at::Tensor& output_weight, const std::stop_token& stop, at::Tensor& values) {
  const Kernel& kernel = *layer.kernel;
  const std::int64_t tokens = input.q.size(2), heads = kernel.weight_heads(shape_of(input));
  TileResult result;
  result.key = asked;
  const TileKey key = complete_tile(asked, tokens, heads);
  result.tokens = tokens;
  result.derived_signed = !has_distributions(kernel.info());
  result.untrained = kernel.info().trainable && !layer.own_parameters;

  const at::TensorOptions indices = input.q.options().dtype(at::kLong);
  const std::vector<std::int64_t> chosen(key.heads.begin(), key.heads.end());
  const std::optional<SomeHeads> some = some_heads(input, layer, chosen);
  const std::int64_t rows_at_once = std::max<std::int64_t>(
      1, kWeightsAtOnce / ((some ? static_cast<std::int64_t>(chosen.size()) : heads) * tokens));
  const std::int64_t rows_a_cell = (key.row_count + key.rows - 1) / key.rows;
  const std::int64_t cells_at_once = std::max<std::int64_t>(1, rows_at_once / rows_a_cell);
  at::Tensor norms; // (h,1,C)
  if (key.value_weighted)
    norms = value_norms(input, output_weight, heads)
                .select(0, 0)
                .narrow(1, key.first_column, key.column_count)
                .unsqueeze(1);
  std::vector<at::Tensor> blocks;
  for (std::int64_t cell = 0; cell < key.rows; cell += cells_at_once) {
    if (stop.stop_requested()) throw Cancelled();
    const std::int64_t end_cell = std::min(key.rows, cell + cells_at_once);
    const std::int64_t first = window(cell, key.rows, key.row_count);
    const std::int64_t last = window(end_cell, key.rows, key.row_count);
    at::Tensor weights = kernel
                             .weights(some ? some->input : input, some ? some->parameters : layer.parameters,
                                      at::arange(key.first_row + first, key.first_row + last, indices))
                             .select(0, 0)
                             .narrow(2, key.first_column, key.column_count);
    if (norms.defined())
      weights = weights.abs() * (some ? norms.index_select(0, at::tensor(chosen, indices)) : norms);
    if (!chosen.empty() && !some) weights = weights.index_select(0, at::tensor(chosen, indices));
    if (key.fusion) weights = fused(weights, *key.fusion);
    if (key.rows < key.row_count) {
      std::vector<at::Tensor> pooled;
      for (std::int64_t each = cell; each < end_cell; ++each) {
        const at::Tensor under = weights.slice(1, window(each, key.rows, key.row_count) - first,
                                               window(each + 1, key.rows, key.row_count) - first);
        pooled.push_back(by_magnitude(under.amax(1), under.amin(1)));
      }
      weights = at::stack(pooled, 1);
    }
    blocks.push_back(pooled_columns(weights, key.columns));
  }
  values = at::cat(blocks, 1);
  return result;
}

class TileReading final : public Reading {
public:
  TileReading(TileKey key, LayerKernel kernel) : key_(std::move(key)), kernel_(std::move(kernel)) {}

  bool teacher_forced() const override { return key_.teacher_forced; }
  bool taps(int layer) const override { return layer == key_.layer; }
  void add_kernels(std::vector<const LayerKernel*>& kernels) const override { kernels.push_back(&kernel_); }
  void read(const LayerTap& layer) override {
    result_ = read_tile(key_, kernel_, layer.input,
                        key_.value_weighted ? layer.output_weight() : at::Tensor(), layer.stop, values_);
  }
  void finish(const FinishedPass& pass, QuantityResults& results) override {
    pass.copies.add(values_, [this, &results](Array values) {
      result_.values = std::move(values);
      results.add(key_, std::move(result_));
    });
  }

private:
  TileKey key_;
  LayerKernel kernel_;
  TileResult result_;
  at::Tensor values_; // on the model's device
};

class TileQuantity final : public QuantityOf<TileKey> {
  std::string key_missing_in(const TileKey& key, const CaptureInfo& capture) const override {
    return key.value_weighted && !capture.has_output_weights ? "it needs W_o, which the capture lacks" : "";
  }
  void check_key(const TileKey& key, const RunShape& shape) const override {
    check_below("layer", key.layer, shape.layers, "layers");
  }
  double key_bytes(const TileKey& key, const ModelInfo& model, std::int64_t tokens) const override {
    const auto n = static_cast<double>(tokens);
    const double rows = key.rows > 0 ? static_cast<double>(key.rows) : 1;
    const double columns = key.columns > 0 ? static_cast<double>(key.columns) : 1;
    const double heads = key.fusion          ? 1.0
                         : key.heads.empty() ? static_cast<double>(model.heads)
                                             : static_cast<double>(key.heads.size());
    return 2.0 * heads * std::min(rows, n) * std::min(columns, n) * sizeof(float);
  }
  bool key_compares(const TileKey& key, const Schedule& schedule) const override {
    return is_another_kernel(schedule, key.layer, key.kernel);
  }
  std::unique_ptr<Reading> reading(const TileKey& key, const PlanContext& context) const override {
    return std::make_unique<TileReading>(key, context.kernel(key.teacher_forced, key.layer, key.kernel));
  }
};

} // namespace

const Quantity& quantity_of(const TileKey& /*key*/) {
  static const TileQuantity quantity;
  return quantity;
}

} // namespace hydrascope
