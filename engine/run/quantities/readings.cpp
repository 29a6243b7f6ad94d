#include "engine/run/quantities/readings.h"

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/quantities/tile_reading.h"
#include "engine/run/quantities/value_norms.h"
#include "engine/run/quantities/vectors_reading.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{32} << 20;

// `output_weight` is needed for value-weighted ones alone.
WeightsResult read_weights(const WeightsAsk& ask, const LayerKernel& kernel, const AttentionInput& input,
                           const at::Tensor& output_weight) {
  const KernelInfo& info = kernel.kernel->info();
  WeightsResult result;
  result.layer = ask.layer;
  result.kernel = kernel.kernel->spec();
  result.teacher_forced = ask.teacher_forced;
  result.derived_signed = !has_distributions(info);
  result.untrained = info.trainable && !kernel.own_parameters;
  result.rows = ask.rows;
  if (result.rows.empty())
    for (std::int64_t row = 0; row < input.q.size(2); ++row) result.rows.push_back(row);
  const at::Tensor rows = at::tensor(result.rows, at::TensorOptions().dtype(at::kLong));
  at::Tensor weights = kernel.kernel->weights(input, kernel.parameters, rows);
  result.value_weighted = ask.value_weighted;
  if (ask.value_weighted)
    weights = weights.abs() * value_norms(input, output_weight, weights.size(1)).unsqueeze(2);
  result.weights = to_array(weights.select(0, 0));
  result.check = kernel.kernel->weights_check(input, kernel.parameters, rows);
  return result;
}

// The heads that rollout fuses: those asked for that are not muted; none where nothing of them is heard.
std::vector<std::int64_t> fused_heads(const RolloutReading& rollout, const std::vector<int>& muted,
                                      std::int64_t heads, std::int64_t kernel_heads) {
  const std::vector<bool> heard = heard_heads(muted, heads, kernel_heads);
  std::vector<std::int64_t> fused;
  for (std::int64_t head = 0; head < kernel_heads; ++head) {
    const bool wanted = rollout.ask.heads.empty() || std::ranges::any_of(rollout.ask.heads, [&](int asked) {
                          return head == std::min<std::int64_t>(asked, kernel_heads - 1);
                        });
    if (wanted && heard[static_cast<std::size_t>(head)]) fused.push_back(head);
  }
  return fused;
}

void read_rollout(RolloutReading& rollout, const LayerKernel& kernel, const AttentionInput& input,
                  const std::vector<int>& muted) {
  const std::int64_t tokens = input.q.size(2);
  const std::int64_t kernel_heads = kernel.kernel->weight_heads(shape_of(input));
  rollout.magnitudes |= !has_distributions(kernel.kernel->info());
  const std::vector<std::int64_t> heads = fused_heads(rollout, muted, input.q.size(1), kernel_heads);
  if (heads.empty()) { // nothing passes but the residual stream: Ā = I
    if (!rollout.product.defined()) rollout.product = at::eye(tokens, at::kFloat).unsqueeze(0);
    return;
  }
  const auto row_bytes = input.q.size(1) * tokens * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, tokens);
  std::vector<at::Tensor> tiles;
  for (std::int64_t first = 0; first < tokens; first += tile) {
    const at::Tensor rows =
        at::arange(first, std::min(tokens, first + tile), at::TensorOptions().dtype(at::kLong));
    at::Tensor weights = kernel.kernel->weights(input, kernel.parameters, rows);
    if (static_cast<std::int64_t>(heads.size()) < kernel_heads)
      weights = weights.index_select(1, at::tensor(heads, at::TensorOptions().dtype(at::kLong)));
    tiles.push_back(rollout_factor(weights, first, rollout.ask.fusion, rollout.ask.discard));
  }
  const at::Tensor factor = at::cat(tiles, 1);
  rollout.product = rollout.product.defined() ? factor.matmul(rollout.product) : factor;
}

// The rows of many queries are formed a tile at a time, as their mean alone is kept.
AttentionRowResult read_attention_row(const AttentionRowAsk& ask, const LayerKernel& kernel,
                                      const AttentionInput& input, const std::stop_token& stop) {
  AttentionRowResult result{ask, !has_distributions(kernel.kernel->info()), {}};
  std::vector<std::int64_t> rows;
  if (ask.query) rows.push_back(*ask.query);
  for (std::int64_t token = 0; !ask.query && token < input.q.size(2); ++token) {
    if (!input.mask.defined() || input.mask[0][token].item<bool>()) rows.push_back(token);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto row_bytes = input.q.size(1) * input.q.size(2) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, count);
  at::Tensor sum;
  for (std::int64_t first = 0; first < count; first += tile) {
    if (stop.stop_requested()) throw Cancelled();
    const auto some = std::span(rows).subspan(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(std::min(tile, count - first)));
    const at::Tensor indices = at::tensor(at::ArrayRef<std::int64_t>(some.data(), some.size()),
                                          at::TensorOptions().dtype(at::kLong));
    const at::Tensor part =
        kernel.kernel->weights(input, kernel.parameters, indices).select(0, 0).to(at::kDouble).sum(1);
    sum = sum.defined() ? sum + part : part;
  }
  result.weights = to_array((sum / static_cast<double>(count)).to(at::kFloat));
  return result;
}

// W_o, where it is needed.
at::Tensor output_weight(const Pass& pass, int layer, bool needed) {
  return needed ? pass.model.model->attention_output_weight(layer) : at::Tensor();
}

} // namespace

AttentionInput constant_input(const AttentionInput& input) {
  AttentionInput constant = input;
  constant.q = input.q.detach();
  constant.k = input.k.detach();
  constant.v = input.v.detach();
  if (input.layer_input.defined()) constant.layer_input = input.layer_input.detach();
  return constant;
}

std::vector<bool> Readings::tapped(std::size_t layers, const HeadRowCache& cache) const {
  std::vector<bool> taps(layers, rollout.has_value() || similar_heads.has_value());
  for (const WeightsReading& reading : weights) taps[static_cast<std::size_t>(reading.ask.layer)] = true;
  for (const VectorsReading& reading : vectors) taps[static_cast<std::size_t>(reading.ask.layer)] = true;
  for (const TileReading& reading : tiles) taps[static_cast<std::size_t>(reading.ask.layer)] = true;
  for (const AttentionRowAsk& ask : attention_rows) taps[static_cast<std::size_t>(ask.layer)] = true;
  for (const int layer : focus_layers) taps[static_cast<std::size_t>(layer)] = true;
  for (const HeadTableReading& reading : head_tables)
    for (std::size_t layer = 0; layer < layers; ++layer)
      if (!reading.known(layer, cache)) taps[layer] = true;
  return taps;
}

void take_known_heads(Readings& readings, const HeadRowCache& cache) {
  for (HeadTableReading& reading : readings.head_tables) reading.take_known(cache);
}

void read_layer(Readings& readings, HeadRowCache& cache, const Pass& pass, int layer,
                const AttentionTap& tap) {
  const auto position = static_cast<std::size_t>(layer);
  const AttentionInput input = constant_input(tap.input);
  for (const WeightsReading& reading : readings.weights) {
    if (reading.ask.layer != layer) continue;
    for (const LayerKernel& kernel : reading.kernels)
      readings.delivered[reading.position].push_back(
          read_weights(reading.ask, kernel, input, output_weight(pass, layer, reading.ask.value_weighted)));
  }
  for (const VectorsReading& reading : readings.vectors) {
    if (reading.ask.layer != layer) continue;
    for (const LayerKernel& kernel : reading.kernels)
      readings.delivered_vectors[reading.position].push_back(read_vectors(reading.ask, kernel, input));
  }
  for (const TileReading& reading : readings.tiles) {
    if (reading.ask.layer != layer) continue;
    readings.delivered_tiles[reading.position].push_back(
        read_tile(reading.ask, reading.kernel, input, output_weight(pass, layer, reading.ask.value_weighted),
                  readings.stop));
  }
  for (HeadTableReading& reading : readings.head_tables) reading.read(position, input, cache);
  for (const AttentionRowAsk& ask : readings.attention_rows) {
    if (ask.layer == layer)
      readings.delivered_rows.push_back(read_attention_row(ask, pass.layers[position], input, readings.stop));
  }
  if (readings.rollout) read_rollout(*readings.rollout, pass.layers[position], input, pass.muted[position]);
  if (readings.similar_heads) readings.similar_heads->inputs.push_back(input);
  if (std::find(readings.focus_layers.begin(), readings.focus_layers.end(), layer) !=
      readings.focus_layers.end())
    readings.focus_taps.emplace(layer, tap);
}

} // namespace hydrascope
