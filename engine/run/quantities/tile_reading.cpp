#include "engine/run/quantities/tile_reading.h"

#include <algorithm>
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
#include "engine/run/quantities/value_norms.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kWeightsAtOnce = std::int64_t{8} << 20;

// Of the entries along `dimension`'s windows the largest by absolute value, where the largest and the
// smallest of each are known.
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

// Where the window of cell `cell` of `cells` over `count` entries begins.
std::int64_t window(std::int64_t cell, std::int64_t cells, std::int64_t count) {
  return cell * count / cells;
}

} // namespace

TileAsk complete_tile(TileAsk ask, std::int64_t tokens, std::int64_t heads) {
  const auto check = [](const char* what, std::int64_t first, std::int64_t& count, std::int64_t limit) {
    if (count == 0) count = limit - first;
    if (first < 0 || count < 1 || first + count > limit)
      throw UsageError(fmt::format("{} {} to {}", what, first, first + count - 1),
                       fmt::format("there are {}", limit), "ask for a part of them");
  };
  check("rows", ask.first_row, ask.row_count, tokens);
  check("columns", ask.first_column, ask.column_count, tokens);
  for (const int head : ask.heads) {
    if (head < 0 || head >= heads)
      throw UsageError(fmt::format("head {}", head), fmt::format("{} has {} heads", ask.kernel.text(), heads),
                       fmt::format("use 0 to {}", heads - 1));
  }
  ask.rows = std::clamp<std::int64_t>(ask.rows, 1, ask.row_count);
  ask.columns = std::clamp<std::int64_t>(ask.columns, 1, ask.column_count);
  return ask;
}

TileResult read_tile(const TileAsk& asked, const LayerKernel& layer, const AttentionInput& input,
                     const at::Tensor& output_weight, const std::stop_token& stop) {
  const Kernel& kernel = *layer.kernel;
  const std::int64_t tokens = input.q.size(2), heads = kernel.weight_heads(shape_of(input));
  TileResult result;
  result.ask = asked;
  const TileAsk ask = complete_tile(asked, tokens, heads);
  result.tokens = tokens;
  result.derived_signed = !has_distributions(kernel.info());
  result.untrained = kernel.info().trainable && !layer.own_parameters;

  const at::TensorOptions indices = at::TensorOptions().dtype(at::kLong);
  const std::vector<std::int64_t> chosen(ask.heads.begin(), ask.heads.end());
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kWeightsAtOnce / (heads * tokens));
  const std::int64_t rows_a_cell = (ask.row_count + ask.rows - 1) / ask.rows;
  const std::int64_t cells_at_once = std::max<std::int64_t>(1, rows_at_once / rows_a_cell);
  at::Tensor norms; // (h,1,C)
  if (ask.value_weighted)
    norms = value_norms(input, output_weight, heads)
                .select(0, 0)
                .narrow(1, ask.first_column, ask.column_count)
                .unsqueeze(1);
  std::vector<at::Tensor> blocks;
  for (std::int64_t cell = 0; cell < ask.rows; cell += cells_at_once) {
    if (stop.stop_requested()) throw Cancelled();
    const std::int64_t end_cell = std::min(ask.rows, cell + cells_at_once);
    const std::int64_t first = window(cell, ask.rows, ask.row_count);
    const std::int64_t last = window(end_cell, ask.rows, ask.row_count);
    at::Tensor weights = kernel
                             .weights(input, layer.parameters,
                                      at::arange(ask.first_row + first, ask.first_row + last, indices))
                             .select(0, 0)
                             .narrow(2, ask.first_column, ask.column_count);
    if (norms.defined()) weights = weights.abs() * norms;
    if (!chosen.empty()) weights = weights.index_select(0, at::tensor(chosen, indices));
    if (ask.fusion) weights = fused(weights, *ask.fusion);
    if (ask.rows < ask.row_count) {
      std::vector<at::Tensor> pooled;
      for (std::int64_t each = cell; each < end_cell; ++each) {
        const at::Tensor under = weights.slice(1, window(each, ask.rows, ask.row_count) - first,
                                               window(each + 1, ask.rows, ask.row_count) - first);
        pooled.push_back(by_magnitude(under.amax(1), under.amin(1)));
      }
      weights = at::stack(pooled, 1);
    }
    blocks.push_back(pooled_columns(weights, ask.columns));
  }
  result.values = to_array(at::cat(blocks, 1));
  return result;
}

} // namespace hydrascope
