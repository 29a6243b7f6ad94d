#include "engine/attention/softmax/softmax_family.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/cache_decoding.h"

namespace hydrascope {

SoftmaxFamily::SoftmaxFamily(KernelSpec kernel_spec)
    : Kernel(std::move(kernel_spec)), heads_(positive_parameter(spec(), "heads")) {}

Plan SoftmaxFamily::plan(const AttentionShape& shape) const {
  return {heads_support(heads_, shape), shape.gradients ? Path::at_once : Path::in_blocks};
}

std::int64_t SoftmaxFamily::weight_heads(const AttentionShape& shape) const {
  return heads_.value_or(shape.heads);
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

at::Tensor attend_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& allowed) {
  at::Tensor scores = at::matmul(q, k.transpose(2, 3));
  if (allowed.defined()) scores.masked_fill_(allowed.logical_not(), -INFINITY);
  at::_softmax_out(scores, scores, -1, false);
  return at::matmul(scores.to(v.scalar_type()), v);
}

at::Tensor SoftmaxFamily::allowed(const AttentionInput& input, const at::Tensor& mask,
                                  const at::Tensor& rows) const {
  return allowed_keys(mask, input.causal, rows, input.q.size(2));
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
  if (const at::Tensor keys = allowed(input, real.mask, rows_or_all(rows, tokens, q)); keys.defined())
    scores = scores.masked_fill(keys.logical_not(), -INFINITY);
  return select_tokens(at::softmax(scores, -1), take_mask(real.mask, rows));
}

std::unique_ptr<DecodingState> SoftmaxFamily::make_decoding(const AttentionShape& shape,
                                                            const KernelParameters&) const {
  return make_cache_decoding(*this, weight_heads(shape), {}, shape);
}

at::Tensor SoftmaxFamily::run_through_weights(const AttentionInput& input) const {
  const at::Tensor w = weights(input, {}, {});
  const at::Tensor v = resplit(select_tokens(input.v, real_mask(input)), w.size(1));
  return resplit(at::matmul(w.to(v.scalar_type()), v), input.q.size(1));
}

Cost SoftmaxFamily::cost(const AttentionShape& shape) const {
  const auto tokens = static_cast<double>(shape.tokens);
  return {.multiply_accumulates = 2 * tokens * tokens * model_width(shape) * static_cast<double>(shape.batch),
          .bytes = bytes_moved(shape)};
}

KernelInfo softmax_info(const char* name, const char* definition) {
  KernelInfo info;
  info.name = name;
  info.family = KernelFamily::exact;
  info.definition = definition;
  info.complexity = "O(N² D)";
  info.feature_width = "—";
  info.source = "Vaswani et al. (2017), Eq. 1";
  info.normalised = true;
  info.weights_positive = true;
  info.devices = {"cpu", "cuda"};
  return info;
}

} // namespace hydrascope
