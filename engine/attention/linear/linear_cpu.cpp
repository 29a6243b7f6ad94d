#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {
namespace {

// Tokens of a part: enough for its sums to take less memory than its keys.
std::int64_t tokens_of_part_with(const std::int64_t features) {
  constexpr std::int64_t least = 2048;
  return std::max(least, cpu::padded_to_lanes(4 * features));
}

// A projection for every head, in the form of the loops.
class HeadMaps {
public:
  HeadMaps(const cpu::PointMap map, const LoopProjection& projection, const std::int64_t head_width,
           const bool normalised)
      : weight_(padded(projection.weight)), bias_(padded(projection.bias)) {
    if (projection.token_weights.defined())
      token_weights_ = projection.token_weights.to(at::kFloat).contiguous();
    common_.map = map;
    common_.head_width = head_width;
    common_.outputs = projection.weight.defined() ? projection.weight.size(2) : head_width;
    common_.scale = static_cast<float>(projection.scale);
    common_.normalised = normalised;
    common_.half_square = static_cast<float>(projection.half_square);
  }

  cpu::LinearMap of(const std::int64_t sequence, const std::int64_t head) const {
    cpu::LinearMap map = common_;
    if (weight_.defined())
      map.weight = weight_.const_data_ptr<float>() + (weight_.size(0) > 1 ? head * weight_.stride(0) : 0);
    if (bias_.defined()) map.bias = bias_.const_data_ptr<float>() + head * bias_.stride(0);
    if (token_weights_.defined())
      map.token_weights = token_weights_.const_data_ptr<float>() +
                          (token_weights_.size(0) > 1 ? sequence * token_weights_.stride(0) : 0);
    return map;
  }

private:
  // float32, the last two dimensions (of a bias the last) padded to whole lanes with 0.
  static at::Tensor padded(const at::Tensor& parameter) {
    if (!parameter.defined()) return {};
    std::vector<std::int64_t> sizes = parameter.sizes().vec();
    for (std::size_t i = 1; i < sizes.size(); ++i) sizes[i] = cpu::padded_to_lanes(sizes[i]);
    at::Tensor result = at::zeros(sizes, parameter.options().dtype(at::kFloat));
    at::Tensor own = result;
    for (std::int64_t i = 1; i < parameter.dim(); ++i) own = own.narrow(i, 0, parameter.size(i));
    own.copy_(parameter);
    return result;
  }

  at::Tensor weight_, bias_, token_weights_;
  cpu::LinearMap common_;
};

} // namespace

AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
                              const LoopProjection& query_projection, const LoopProjection& key_projection,
                              const bool normalised) {
  const std::int64_t batch = input.q.size(0), heads = input.q.size(1), tokens = input.q.size(2),
                     width = input.q.size(3);
  const bool bfloat16 = input.q.scalar_type() == at::kBFloat16;
  const at::Tensor query = dense_features(input.q), key = dense_features(input.k),
                   value = dense_features(input.v);
  const HeadMaps query_maps(map, query_projection, width, normalised),
      key_maps(map, key_projection, width, normalised);
  const LoopMask masks(mask);
  AttentionOutput output{.out =
                             to_heads(at::empty({batch, tokens, heads * width}, input.q.options()), heads)};

  const cpu::LinearMap any = key_maps.of(0, 0);
  const std::int64_t tokens_of_part = tokens_of_part_with(any.features());
  const std::int64_t parts = std::max<std::int64_t>(1, (tokens + tokens_of_part - 1) / tokens_of_part);
  struct Unit {
    std::int64_t sequence = 0, head = 0;
    cpu::TokenRange range;
  };
  const auto unit = [&](const std::int64_t i) {
    const std::int64_t part = i % parts;
    return Unit{i / parts / heads,
                i / parts % heads,
                {part * tokens_of_part, std::min(tokens, (part + 1) * tokens_of_part)}};
  };
  // Starting a thread pays from about a million products on.
  const std::int64_t products =
      std::max<std::int64_t>(1, std::min(tokens, tokens_of_part) * any.features() * width);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 20) / products);

  std::vector<cpu::KeySums> sums(static_cast<std::size_t>(batch * heads * parts), cpu::KeySums(any, width));
  at::parallel_for(0, batch * heads * parts, grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [sequence, head, range] = unit(i);
      cpu::add_keys(rows_of(key, sequence, head), rows_of(value, sequence, head), masks.of(sequence), range,
                    key_maps.of(sequence, head), bfloat16, sums[static_cast<std::size_t>(i)]);
    }
  });
  for (auto first = sums.begin(); first != sums.end(); first += parts) cpu::merge({first, first + parts});
  std::vector<std::int64_t> zeros(static_cast<std::size_t>(batch * heads * parts));
  at::parallel_for(0, batch * heads * parts, grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [sequence, head, range] = unit(i);
      zeros[static_cast<std::size_t>(i)] = cpu::linear_outputs(
          rows_of(query, sequence, head), masks.of(sequence), range, query_maps.of(sequence, head), bfloat16,
          sums[static_cast<std::size_t>(i / parts * parts)], rows_of(output.out, sequence, head));
    }
  });
  output.zero_denominators = std::reduce(zeros.begin(), zeros.end());
  return output;
}

} // namespace hydrascope
