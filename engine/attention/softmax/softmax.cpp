// The reference kernel: out = softmax(q kᵀ/√d) v, composed of LibTorch's operations.
#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/softmax_family.h"

namespace hydrascope {
namespace {

class Softmax final : public SoftmaxFamily {
public:
  explicit Softmax(KernelSpec kernel_spec) : SoftmaxFamily(std::move(kernel_spec)) {}

protected:
  AttentionOutput compute(Path path, const AttentionInput& input, const KernelParameters&) const override {
    return {.out = path == Path::at_once ? run_through_weights(input) : run_in_tiles(input)};
  }

private:
  // Processes rows in tiles of about 32 MB of scores: nothing is kept for a backward pass, so that memory
  // stays O(N).
  at::Tensor run_in_tiles(const AttentionInput& input) const {
    const at::Tensor mask = real_mask(input);
    const std::int64_t heads = weight_heads(shape_of(input)), tokens = input.q.size(2);
    const at::ScalarType type = compute_type(input.q.scalar_type());
    const at::Tensor v = resplit(select_tokens(input.v, mask), heads);
    const at::Tensor k = resplit(select_tokens(input.k, mask), heads).to(type);
    const double scale = 1.0 / std::sqrt(static_cast<double>(k.size(3)));
    const at::Tensor q = resplit(select_tokens(input.q, mask), heads).to(type) * scale;

    // Causal tiles are low: later keys than a tile's last query are left out.
    constexpr std::int64_t causal_rows = 128;
    std::int64_t step = std::max<std::int64_t>(1, (8 << 20) / (q.size(0) * heads * tokens));
    if (input.causal) step = std::min(step, causal_rows);
    if (step >= tokens) {
      const at::Tensor rows = rows_or_all({}, tokens, q);
      const at::Tensor out = attend_rows(q, k, v, allowed_keys(mask, input.causal, rows, tokens));
      return resplit(select_tokens(out, mask), input.q.size(1));
    }
    const at::Tensor k_packed = k.contiguous(), v_packed = v.contiguous();
    at::Tensor out = at::empty(v.sizes(), v.options());
    for (std::int64_t first = 0; first < tokens; first += step) {
      const std::int64_t last = std::min(tokens, first + step);
      const std::int64_t keys = input.causal ? last : tokens; // later keys are masked anyway
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
  KernelInfo info = softmax_info("softmax", "A = softmax(q kᵀ/√d), out = A v");
  info.exact_softmax = true;
  info.parameters = {heads_info()};
  info.published = "58.8 Matthews (CoLA, BERT-base)";
  return {info, {}, [](const KernelSpec& spec) { return std::make_unique<Softmax>(spec); }};
}

} // namespace hydrascope
