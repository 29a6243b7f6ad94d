#include "engine/run/quantities/vectors_reading.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/tokens.h"
#include "engine/base/error.h"
#include "engine/run/tensor_array.h"

namespace hydrascope {

VectorsResult read_vectors(const VectorsAsk& ask, const LayerKernel& layer, const AttentionInput& input) {
  const Kernel& kernel = *layer.kernel;
  const std::int64_t heads = kernel.weight_heads(shape_of(input));
  if (ask.head < 0 || ask.head >= heads)
    throw UsageError(fmt::format("head {}", ask.head),
                     fmt::format("{} has {} heads", kernel.spec().text(), heads),
                     fmt::format("use 0 to {}", heads - 1));
  VectorsResult result;
  result.layer = ask.layer;
  result.kernel = kernel.spec();
  result.teacher_forced = ask.teacher_forced;
  result.untrained = kernel.info().trainable && !layer.own_parameters;
  result.head = ask.head;
  result.query = ask.query;
  const at::Tensor mask = real_mask(input);
  const auto heads_of = [&](const at::Tensor& x) {
    return to_array(resplit(select_tokens(x, mask), heads).select(0, 0));
  };
  result.q = heads_of(input.q);
  result.k = heads_of(input.k);

  const at::Tensor row = at::tensor({ask.query}, at::TensorOptions().dtype(at::kLong));
  const auto global = kernel.global_vector(input, layer.parameters, row);
  const auto features = features_of(kernel, input, layer.parameters, global ? at::Tensor() : row, {});
  if (!features) return result;
  // A Hydra kernel's features are one row over all heads.
  const std::int64_t head = features->query.size(1) == 1 ? 0 : ask.head;
  const at::Tensor query = features->query.select(0, 0).select(0, head);
  result.rescaled = features->rescaled;
  result.key_features = to_array(features->key.select(0, 0).select(0, head));
  result.query_feature = to_array(query.select(0, global ? ask.query : 0));
  if (!global) return result;
  result.query_features = to_array(query);
  result.values = to_array(to_rows(select_tokens(input.v, mask)).select(0, 0));
  result.global = to_array(global->vector.select(0, 0));
  return result;
}

} // namespace hydrascope
