// The common part of `softmax`, `sdpa`, `flash` and `local-window`: explicit weights, the heads= parameter,
// cost.
#pragma once

#include <optional>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// A kernel of the softmax family: A = softmax(q kᵀ/√d) for any split of the D features into heads.
class SoftmaxFamily : public Kernel {
public:
  Plan plan(const AttentionShape& shape) const override;
  std::int64_t weight_heads(const AttentionShape& shape) const override;
  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override;
  Cost cost(const AttentionShape& shape) const override;

protected:
  explicit SoftmaxFamily(KernelSpec spec);
  std::string growth_refusal(const AttentionShape&) const override { return {}; }
  std::unique_ptr<DecodingState> make_decoding(const AttentionShape& shape,
                                               const KernelParameters& parameters) const override;

  // The keys that the queries `rows` (R) int64 may attend to, as allowed_keys(); `mask` as of real_mask().
  virtual at::Tensor allowed(const AttentionInput& input, const at::Tensor& mask,
                             const at::Tensor& rows) const;
  // Computes the output from the explicit weights of all rows, so that it is differentiable.
  at::Tensor run_through_weights(const AttentionInput& input) const;

private:
  std::optional<std::int64_t> heads_;
};

// Which keys each query may attend to, (B or 1, 1, R or 1, N) bool; undefined: all. Every row has at least
// one such key, real or not, so that no row of a softmax is empty: rows of masked queries are cleared
// afterwards.
at::Tensor allowed_keys(const at::Tensor& mask, bool causal, const at::Tensor& rows, std::int64_t tokens);

// out (B,H,R,d) of some query rows, all scores of which fit in memory: q (B,H,R,d) is already scaled, k and v
// (B,H,N,d), `allowed` as above.
at::Tensor attend_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& allowed);

// softmax over the D features split into `heads`, by LibTorch's fused scaled_dot_product_attention.
AttentionOutput run_through_sdpa(const AttentionInput& input, std::int64_t heads);
// The same by the fused loops where they take it (loop_input.h), else by LibTorch's.
AttentionOutput run_through_flash(const AttentionInput& input, std::int64_t heads);

// The entry of a kernel of the family, with the facts that all of them share.
KernelInfo softmax_info(const char* name, const char* definition);

} // namespace hydrascope
