// The reference kernel: out = softmax(q kᵀ/√d) v, written out.
#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include "engine/attention/registry.h"
#include "engine/attention/softmax_weights.h"
#include "engine/attention/tokens.h"

namespace hydrascope {
namespace {

// out of some query rows, all scores of which fit memory. q is scaled already. Overwrites the scores in
// place.
at::Tensor attend_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& allowed) {
  at::Tensor scores = at::matmul(q, k.transpose(2, 3));
  if (allowed.defined()) scores.masked_fill_(allowed.logical_not(), -INFINITY);
  at::_softmax_out(scores, scores, -1, false);
  return at::matmul(scores.to(v.scalar_type()), v);
}

class Softmax final : public SoftmaxFamily {
public:
  explicit Softmax(KernelSpec kernel_spec) : SoftmaxFamily(std::move(kernel_spec)) {}

  Plan plan(const AttentionShape& shape) const override { return {heads_support(shape), "composed"}; }

  AttentionOutput run(const AttentionInput& input, const KernelParameters& parameters) const override {
    if (needs_gradient(input)) {
      const at::Tensor w = weights(input, parameters, {});
      const at::Tensor v = resplit(select_tokens(input.v, real_mask(input)), w.size(1));
      const at::Tensor out = at::matmul(w.to(v.scalar_type()), v);
      return {.out = resplit(out, input.q.size(1)), .path = "composed"};
    }
    return {.out = run_in_tiles(input), .path = "composed"};
  }

private:
  // Rows are taken in tiles of about 32 MB of scores: nothing is kept for a backward pass, so that memory
  // stays O(N).
  at::Tensor run_in_tiles(const AttentionInput& input) const {
    require_support(input);
    const at::Tensor mask = real_mask(input);
    const std::int64_t heads = weight_heads(shape_of(input)), tokens = input.q.size(2);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const at::Tensor v = resplit(select_tokens(input.v, mask), heads);
    const at::Tensor k = resplit(select_tokens(input.k, mask), heads).to(type);
    const double scale = 1.0 / std::sqrt(static_cast<double>(k.size(3)));
    const at::Tensor q = resplit(select_tokens(input.q, mask), heads).to(type) * scale;

    const std::int64_t step = std::max<std::int64_t>(1, (8 << 20) / (q.size(0) * heads * tokens));
    if (step >= tokens) {
      const at::Tensor rows = rows_or_all({}, tokens, q);
      const at::Tensor out = attend_rows(q, k, v, allowed_keys(mask, input.causal, rows, tokens));
      return resplit(select_tokens(out, mask), input.q.size(1));
    }
    const at::Tensor k_packed = k.contiguous(), v_packed = v.contiguous();
    at::Tensor out = at::empty(v.sizes(), v.options());
    for (std::int64_t first = 0; first < tokens; first += step) {
      const std::int64_t last = std::min(tokens, first + step);
      const std::int64_t keys = input.causal ? last : tokens; // later keys are not looked at
      const at::Tensor rows = at::arange(first, last, q.options().dtype(at::kLong));
      const at::Tensor allowed =
          allowed_keys(mask.defined() ? mask.slice(1, 0, keys) : mask, input.causal, rows, keys);
      out.slice(2, first, last)
          .copy_(attend_rows(q.slice(2, first, last), k_packed.slice(2, 0, keys), v_packed.slice(2, 0, keys),
                             allowed));
    }
    return resplit(select_tokens(out, mask), input.q.size(1));
  }
};

} // namespace

RegistryEntry softmax_kernel() {
  KernelInfo info;
  info.name = "softmax";
  info.family = "softmax";
  info.definition = "A = softmax(q kᵀ/√d), out = A v";
  info.complexity = "O(N² D)";
  info.feature_width = "—";
  info.source = "Vaswani et al. (2017), Eq. 1";
  info.normalised = true;
  info.weights_positive = true;
  info.exact_softmax = true;
  info.parameters = {"heads"};
  info.devices = {"cpu", "cuda"};
  return {info, {}, [](const KernelSpec& spec) { return std::make_unique<Softmax>(spec); }};
}

} // namespace hydrascope
