// Features of an input's tokens, and the sums of linear attention over the keys: over all keys, block by
// block, or causal, over j ≤ i in chunks without an N×N matrix.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// An input's tokens and their features, split into `heads` heads: a block at a time, or all at once. Refers
// to its arguments.
class FeatureBlocks {
public:
  FeatureBlocks(const AttentionInput& input, const KernelParameters& parameters, const FeatureMap& map,
                std::int64_t heads, bool all_at_once);

  const std::vector<TokenBlock>& all() const { return blocks_; }
  // (B,N) or, of a block, (B,R); undefined: all real.
  const at::Tensor& mask() const { return mask_; }
  at::Tensor mask(const TokenBlock& block) const;

  // A block of x (B,H,N,d) as (B,h,R,D/h), masked tokens 0: of any x, of v, of k.
  at::Tensor tokens(const at::Tensor& x, const TokenBlock& block) const;
  at::Tensor value(const TokenBlock& block) const { return tokens(input_.v, block); }
  at::Tensor key_tokens(const TokenBlock& block) const { return tokens(input_.k, block); }
  // φ of a block's keys or queries, (B,h,R,d′).
  at::Tensor key(const TokenBlock& block) const { return features(input_.k, Side::key, block); }
  at::Tensor query(const TokenBlock& block) const { return features(input_.q, Side::query, block); }

  // Queries `rows` (R) int64, undefined = all: the tokens, masked ones 0, and their features; and features of
  // keys.
  at::Tensor query_tokens(const at::Tensor& rows) const;
  at::Tensor query_rows(const at::Tensor& rows) const;
  at::Tensor key_rows(const at::Tensor& rows) const;

private:
  at::Tensor features(const at::Tensor& x, Side side, const TokenBlock& block) const;
  FeatureContext context(const at::Tensor& rows) const;

  const AttentionInput& input_;
  const KernelParameters& parameters_;
  const FeatureMap& map_;
  std::int64_t heads_;
  at::Tensor mask_;
  at::ScalarType type_;
  std::vector<TokenBlock> blocks_;
};

// The scale of exponential maps' features: the largest log-feature over the real keys, (B,h,1,d′); 0 without
// any.
at::Tensor scale_of_keys(const FeatureBlocks& tokens);
// exp(log φ(k) − scale), masked keys 0.
at::Tensor scaled_key(const at::Tensor& log_key, const at::Tensor& scale, const at::Tensor& mask);
// exp(log φ(q) + scale), each row divided by its largest entry.
at::Tensor scaled_query(const at::Tensor& log_query, const at::Tensor& scale);
// numerator/denominator, 0 where the denominator is 0: there every product is 0, and the numerator with them.
at::Tensor quotient(const at::Tensor& numerator, const at::Tensor& denominator);

// Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j); features of exponential maps divided by exp(scale).
struct KeySums {
  at::Tensor values; // (B,h,d′,d)
  at::Tensor totals; // (B,h,d′,1)
  at::Tensor scale;  // (B,h,1,d′); undefined for other maps
};
KeySums sums_over_keys(const FeatureBlocks& tokens, bool logarithmic);

// num_i = Σ_{j≤i} (φ(q_i)·φ(k_j)) v_j and den_i = Σ_{j≤i} φ(q_i)·φ(k_j).
struct CausalSums {
  at::Tensor numerator;   // (B,H,N,d)
  at::Tensor denominator; // (B,H,N,1)
};

// query, key (B,H,N,f): feature values; v (B,H,N,d). O(N·f·d) time.
CausalSums causal_sums(const at::Tensor& query, const at::Tensor& key, const at::Tensor& v);

// The same from log-features, each row scaled by exp(−r_i), r_i = max over j ≤ i and f of ℓ_f(q_i) +
// ℓ_f(k_j): exact whatever their range, since the scale of a key does not depend on later keys. `mask`
// (B,N) bool or undefined.
CausalSums causal_sums_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                     const at::Tensor& v, const at::Tensor& mask);

// Σ_f exp(ℓ_f(q_i) + ℓ_f(k_j) − r_i) over j ≤ rows_i, where r_i = max of ℓ_f(q_i) + ℓ_f(k_j) over all f and j
// ≤ rows_i: (B,H,R,N), from log_query (B,H,R,f), log_key (B,H,N,f). 0 for keys that are masked or later than
// the query. One matrix product or, where the range of the keys is too wide for that, every exponent by
// itself in tiles of rows.
at::Tensor causal_products_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                         const at::Tensor& rows, const at::Tensor& mask);

} // namespace hydrascope
