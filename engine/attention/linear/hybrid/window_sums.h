// The two parts of hybrid attention, each with its sums and what they were divided by.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "engine/attention/linear/feature_sums.h"

namespace hydrascope {

// The windows of a sequence's tokens: those of `first` … `last` − 1 of each token, (B or 1,N) int64.
struct Windows {
  at::Tensor first, last;
};
// lengths (B or 1,1) int64: the number of real tokens, which come first.
Windows windows_of(std::int64_t tokens, std::int64_t window, bool causal, const at::Tensor& lengths);

// Sums relative to e^reference: of softmax terms and of linear ones.
struct WindowSums {
  at::Tensor numerator;              // (B,H,N,d)
  at::Tensor denominator, reference; // (B,H,N,1); −∞ without any key
};

// Σ_{j∈W_i} e^{s_ij} [v_j, 1] of the last N tokens of k and v (B,H_k,P+N,d), s = q·k/√d, for q (B,H,N,d). The
// windows count from the first of the P + N tokens and reach at most `window` − 1 tokens to either side. In
// chunks: memory is linear in N.
WindowSums softmax_sums(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Windows& windows,
                        std::int64_t window, bool causal);

// Both together, and their quotient (B,H,N,d); 0 where there is no key.
WindowSums added(const WindowSums& one, const WindowSums& other);
at::Tensor quotient_of(const WindowSums& sums);

// Σ_f exp(ℓ_f(q_i) + ℓ_f(k_j) − r_i) over the keys outside of query i's window: before first_i and, unless
// `causal`, from last_i on; (B,H,R,N), 0 elsewhere. r_i is the largest exponent. log_query (B,H,R,f), log_key
// (B,H,N,f), first and last (B,R) int64, mask (B,N) or undefined. Exact as causal_products_of_logarithms().
CausalProducts products_outside(const at::Tensor& log_query, const at::Tensor& log_key, const Windows& rows,
                                const at::Tensor& mask, bool causal);
// The sums as those of feature_sums.h give them.
WindowSums window_sums(const CausalSums& sums);

} // namespace hydrascope
