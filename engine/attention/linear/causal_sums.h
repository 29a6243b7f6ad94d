// Causal linear attention in chunks: sums over j ≤ i without an N×N matrix.
#pragma once

#include <ATen/core/Tensor.h>

namespace hydrascope {

// num_i = Σ_{j≤i} (φ(q_i)·φ(k_j)) v_j and den_i = Σ_{j≤i} φ(q_i)·φ(k_j).
struct CausalSums {
  at::Tensor numerator;   // (B,H,N,d)
  at::Tensor denominator; // (B,H,N,1)
};

// query, key (B,H,N,f): feature values; v (B,H,N,d). O(N·f·d) time.
CausalSums causal_sums(const at::Tensor& query, const at::Tensor& key, const at::Tensor& v);

// The same from log-features, each row scaled by exp(−r_i), r_i = max over j ≤ i and f of ℓ_f(q_i) +
// ℓ_f(k_j): exact whatever their range, since the reference a key is scaled by never looks ahead. `mask`
// (B,N) bool or undefined.
CausalSums causal_sums_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                     const at::Tensor& v, const at::Tensor& mask);

// Σ_f exp(ℓ_f(q_i) + ℓ_f(k_j) − r_i) over j ≤ rows_i, where r_i = max of ℓ_f(q_i) + ℓ_f(k_j) over all f and j
// ≤ rows_i: (B,H,R,N), from log_query (B,H,R,f), log_key (B,H,N,f). Key tokens masked or later than the query
// give 0. One product of matrices, or where the range of the keys is too wide for that, every exponent by
// itself in tiles of rows.
at::Tensor causal_products_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                         const at::Tensor& rows, const at::Tensor& mask);

} // namespace hydrascope
