#include "engine/run/quantities/similar_heads.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/ops/arange.h>

#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/quantities/head_distance.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {
namespace {

constexpr std::int64_t kRowsBytes = std::int64_t{16} << 20;

} // namespace

SimilarHeads similar_heads(const SimilarHeadsReading& reading, std::span<const LayerKernel> layers,
                           const std::stop_token& stop) {
  const AttentionInput& first = reading.inputs.front();
  const std::int64_t heads = first.q.size(1), tokens = first.q.size(2);
  const auto chosen_layer = static_cast<std::size_t>(reading.head.layer);
  const auto whole_heads = [&](std::size_t layer) {
    return layers[layer].kernel->weight_heads(shape_of(reading.inputs[layer])) == heads;
  };
  SimilarHeads similar;
  similar.head = reading.head;
  // One measure for all, so that the numbers can be compared.
  for (const LayerKernel& layer : layers)
    if (!has_distributions(layer.kernel->info())) similar.metric = HeadMetric::cosine;

  std::vector<HeadDistances> distances(layers.size(), HeadDistances(similar.metric));
  const std::int64_t step = std::clamp<std::int64_t>(
      kRowsBytes / (heads * tokens * static_cast<std::int64_t>(sizeof(float))), 1, tokens);
  for (std::int64_t begin = 0; whole_heads(chosen_layer) && begin < tokens; begin += step) {
    const at::Tensor rows =
        at::arange(begin, std::min(tokens, begin + step), at::TensorOptions().dtype(at::kLong));
    const at::Tensor real_rows = take_mask(real_mask(first), rows);
    const auto weights_of = [&](std::size_t layer) {
      return layers[layer].kernel->weights(reading.inputs[layer], layers[layer].parameters, rows);
    };
    const at::Tensor chosen = weights_of(chosen_layer).narrow(1, reading.head.head, 1);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      if (stop.stop_requested()) throw Cancelled();
      if (whole_heads(layer)) distances[layer].add(weights_of(layer), chosen, real_rows);
    }
  }
  similar.distances.shape = {static_cast<std::int64_t>(layers.size()), heads};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    std::vector<float> row(static_cast<std::size_t>(heads), std::numeric_limits<float>::quiet_NaN());
    if (whole_heads(layer) && whole_heads(chosen_layer))
      row = to_array(distances[layer].value().select(0, 0)).values;
    similar.distances.values.insert(similar.distances.values.end(), row.begin(), row.end());
  }
  return similar;
}

} // namespace hydrascope
