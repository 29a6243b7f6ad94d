// softmax by LibTorch's fused scaled_dot_product_attention.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/interface/tokens.h"
#include "engine/attention/softmax/softmax_family.h"

namespace hydrascope {
namespace {

// The names of LibTorch's implementations (sdp::SDPBackend).
std::string backend_name(std::int64_t choice) {
  switch (choice) {
    case 0: return "LibTorch sdpa, composed";
    case 1: return "LibTorch sdpa, flash";
    case 2: return "LibTorch sdpa, memory-efficient";
    case 3: return "LibTorch sdpa, cuDNN";
    default: return "LibTorch sdpa, overrideable";
  }
}

class Sdpa final : public SoftmaxFamily {
public:
  explicit Sdpa(KernelSpec kernel_spec) : SoftmaxFamily(std::move(kernel_spec)) {}

  Plan plan(const AttentionShape& shape) const override {
    return {SoftmaxFamily::plan(shape).support, Path::sdpa};
  }

protected:
  AttentionOutput compute(Path, const AttentionInput& input, const KernelParameters&) const override {
    return run_through_sdpa(input, weight_heads(shape_of(input)));
  }
};

} // namespace

AttentionOutput run_through_sdpa(const AttentionInput& input, const std::int64_t heads) {
  const at::Tensor mask = real_mask(input);
  const at::Tensor q = resplit(select_tokens(input.q, mask), heads);
  const at::Tensor k = resplit(select_tokens(input.k, mask), heads);
  const at::Tensor v = resplit(select_tokens(input.v, mask), heads);
  // LibTorch accepts either its own causal form or a mask.
  const bool plain_causal = input.causal && !mask.defined();
  std::optional<at::Tensor> allowed;
  if (mask.defined()) allowed = allowed_keys(mask, input.causal, rows_or_all({}, q.size(2), q), q.size(2));
  const std::int64_t choice = at::_fused_sdp_choice(q, k, v, allowed, 0.0, plain_causal);
  const at::Tensor out = at::scaled_dot_product_attention(q, k, v, allowed, 0.0, plain_causal);
  return {.out = resplit(select_tokens(out, mask), input.q.size(1)), .path = backend_name(choice)};
}

RegistryEntry sdpa_kernel() {
  KernelInfo info = softmax_info("sdpa", "softmax by LibTorch's fused scaled_dot_product_attention");
  info.exact_softmax = true;
  info.parameters = {heads_info()};
  return {info, {}, [](const KernelSpec& spec) { return std::make_unique<Sdpa>(spec); }};
}

} // namespace hydrascope
