// Sums over tokens weighted by a softmax over them, feature by feature (AFT-Simple: Zhai et al. 2021, Eq. 5):
// over all tokens, or causal. Rows (B,N,D); numbers stay exact whatever the range of the keys.
#pragma once

#include <ATen/core/Tensor.h>

namespace hydrascope {

// Σ_t softmax over tokens(K)_t ⊙ V_t, accumulated block by block with a running maximum of each feature.
class TokenSoftmaxSum {
public:
  // key, value (B,n,D) of a block, mask (B,n) or undefined.
  void add(const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask);
  at::Tensor result() const; // (B,1,D)

private:
  at::Tensor largest_, weighted_, total_; // (B,1,D)
};

// Of every token i over j ≤ i: the largest key m_i, Σ_j e^(k_j − m_i) and Σ_j e^(k_j − m_i) v_j, (B,N,D).
struct CausalTokenSums {
  at::Tensor largest, total, weighted;

  at::Tensor mean() const;      // weighted/total; 0 without a token
  CausalTokenSums last() const; // of the last token, (B,1,D)
};
// key: −∞ where masked; value: 0 there. `before`: the sums of earlier tokens, (B,1,D), or empty.
// Differentiable.
CausalTokenSums causal_token_sums(const at::Tensor& key, const at::Tensor& value,
                                  const CausalTokenSums& before = {});

// The largest key of every feature, (B,1,D), if e^key divided by it is exact for all tokens i and j ≤ i; else
// undefined. key: as above.
at::Tensor common_scale(const at::Tensor& key);

} // namespace hydrascope
