// What `softmax` and `sdpa` share: explicit weights, the heads= parameter, cost.
#pragma once

#include <optional>

#include "engine/attention/kernel.h"

namespace hydrascope {

// A kernel of the softmax family: A = softmax(q kᵀ/√d) over any split of the D features into heads.
class SoftmaxFamily : public Kernel {
public:
  std::int64_t weight_heads(const AttentionShape& shape) const override;
  at::Tensor weights(const AttentionInput& input, const KernelParameters& parameters,
                     const at::Tensor& rows) const override;
  Cost cost(const AttentionShape& shape) const override;

protected:
  explicit SoftmaxFamily(KernelSpec spec);
  // Whether D can be cut into the heads asked for.
  Support heads_support(const AttentionShape& shape) const;
  // Throws UsageError with the plan's reason.
  void require_support(const AttentionInput& input) const;

private:
  std::optional<std::int64_t> heads_;
};

// Which keys each query may look at, (B or 1, 1, R or 1, N) bool; undefined where all may. Every row has at
// least one such key, real or not, so that no row of a softmax is empty: rows of masked queries are cleared
// afterwards.
at::Tensor allowed_keys(const at::Tensor& mask, bool causal, const at::Tensor& rows, std::int64_t tokens);

} // namespace hydrascope
