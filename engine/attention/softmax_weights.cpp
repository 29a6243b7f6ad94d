#include "engine/attention/softmax_weights.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "engine/attention/cost.h"
#include "engine/attention/spec_values.h"
#include "engine/attention/tokens.h"
#include "engine/plain/error.h"

namespace hydrascope {

SoftmaxFamily::SoftmaxFamily(KernelSpec kernel_spec)
    : Kernel(std::move(kernel_spec)), heads_(positive_parameter(spec(), "heads")) {}

std::int64_t SoftmaxFamily::weight_heads(const AttentionShape& shape) const {
  return heads_.value_or(shape.heads);
}

Support SoftmaxFamily::heads_support(const AttentionShape& shape) const {
  const std::int64_t width = shape.heads * shape.head_width;
  if (width % weight_heads(shape) == 0) return {};
  return {.ok = false,
          .reason = fmt::format("heads={} does not divide the model width {}", weight_heads(shape), width)};
}

void SoftmaxFamily::require_support(const AttentionInput& input) const {
  check_input(input);
  const Support support = supports(shape_of(input));
  if (!support.ok) throw UsageError(spec().text(), support.reason, "choose a divisor");
}

at::Tensor allowed_keys(const at::Tensor& mask, bool causal, const at::Tensor& rows, std::int64_t tokens) {
  at::Tensor allowed;
  if (mask.defined()) {
    const at::Tensor empty = mask.any(1, true).logical_not();
    allowed = mask.logical_or(empty).unsqueeze(1).unsqueeze(1);
  }
  if (!causal) return allowed;
  const at::Tensor keys = at::arange(tokens, rows.options()).unsqueeze(0);
  const at::Tensor queries = rows.unsqueeze(1);
  const at::Tensor earlier = keys <= queries;
  if (!allowed.defined()) return earlier.unsqueeze(0).unsqueeze(0);
  return allowed.logical_and(earlier).logical_or(keys == queries);
}

at::Tensor SoftmaxFamily::weights(const AttentionInput& input, const KernelParameters&,
                                  const at::Tensor& rows) const {
  require_support(input);
  const std::int64_t heads = weight_heads(shape_of(input)), tokens = input.q.size(2);
  const RealTokens real = real_tokens(input);
  const at::Tensor q = resplit(take_tokens(real.q, rows), heads);
  const at::Tensor k = resplit(real.k, heads);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  at::Tensor scores = at::matmul(q * scale, k.transpose(2, 3));
  const at::Tensor allowed = allowed_keys(real.mask, input.causal, rows_or_all(rows, tokens, q), tokens);
  if (allowed.defined()) scores = scores.masked_fill(allowed.logical_not(), -INFINITY);
  return select_tokens(at::softmax(scores, -1), take_mask(real.mask, rows));
}

Cost SoftmaxFamily::cost(const AttentionShape& shape) const {
  const auto tokens = static_cast<double>(shape.tokens);
  return {.multiply_accumulates = 2 * tokens * tokens * model_width(shape) * static_cast<double>(shape.batch),
          .bytes = bytes_moved(shape)};
}

} // namespace hydrascope
