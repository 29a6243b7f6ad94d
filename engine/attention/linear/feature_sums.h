// Features of an input's tokens, and the sums of linear attention over the keys: over all keys, block by
// block, or causal, over j ≤ i in chunks without an N×N matrix. Below, H_k is the number of heads that keys
// and values have: H, or of grouped heads that of the key/value heads.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "engine/attention/interface/tokens.h"
#include "engine/attention/linear/feature_map.h"

namespace hydrascope {

// While the object exists, autocast computes nothing in float16 for tokens of that type: a sum over tokens
// may leave its range, as the denominator of `elu` does over 760 tokens of 64 normal features. bfloat16 has
// the range of float32, and there autocast still multiplies in bfloat16.
c10::impl::ExcludeDispatchKeyGuard without_float16_sums(at::ScalarType tokens);

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

  // H_k.
  std::int64_t key_heads() const { return key_heads_; }
  std::int64_t heads() const { return heads_; }

  // A block of x (B,H,N,d) as (B,h,R,D/h), masked tokens 0; of v and k (B,H_k,R,D/h).
  at::Tensor tokens(const at::Tensor& x, const TokenBlock& block) const;
  at::Tensor value(const TokenBlock& block) const { return of_key_heads(input_.v, block); }
  at::Tensor key_tokens(const TokenBlock& block) const { return of_key_heads(input_.k, block); }
  // φ of a block's keys (B,H_k,R,d′), or queries (B,h,R,d′).
  at::Tensor key(const TokenBlock& block) const {
    return map_.features(key_tokens(block), Side::key, context(block));
  }
  at::Tensor query(const TokenBlock& block) const {
    return map_.features(tokens(input_.q, block), Side::query, context(block));
  }

  // Queries `rows` (R) int64, undefined = all: the tokens, masked ones 0, and their features; and features of
  // keys (B,h,T,d′).
  at::Tensor query_tokens(const at::Tensor& rows) const;
  at::Tensor query_rows(const at::Tensor& rows) const;
  at::Tensor key_rows(const at::Tensor& rows) const;

private:
  at::Tensor of_key_heads(const at::Tensor& x, const TokenBlock& block) const;
  FeatureContext context(const at::Tensor& rows) const;
  FeatureContext context(const TokenBlock& block) const;

  const AttentionInput& input_;
  const KernelParameters& parameters_;
  const FeatureMap& map_;
  std::int64_t heads_, key_heads_;
  at::Tensor mask_;
  at::ScalarType type_;
  std::vector<TokenBlock> blocks_;
};

// H_k of an input whose features are split into `heads` heads.
std::int64_t key_heads_of(const AttentionInput& input, const FeatureMap& map, std::int64_t heads);

// The scale of exponential maps' features: the largest log-feature over the real keys, (B,H_k,1,d′); 0
// without any.
at::Tensor scale_of_keys(const FeatureBlocks& tokens);
// exp(log φ(k) − scale), masked keys 0.
at::Tensor scaled_key(const at::Tensor& log_key, const at::Tensor& scale, const at::Tensor& mask);
// exp(log φ(q) + scale), each row divided by its largest entry.
at::Tensor scaled_query(const at::Tensor& log_query, const at::Tensor& scale);
// numerator/denominator, 0 where the denominator is 0: there every product is 0, and the numerator with them.
at::Tensor quotient(const at::Tensor& numerator, const at::Tensor& denominator);

// Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j); features of exponential maps divided by exp(scale).
struct KeySums {
  at::Tensor values; // (B,H_k,d′,d)
  at::Tensor totals; // (B,H_k,d′,1)
  at::Tensor scale;  // (B,H_k,1,d′); undefined for other maps
};
KeySums sums_over_keys(const FeatureBlocks& tokens, bool logarithmic);

// num_i = Σ_{j≤i} (φ(q_i)·φ(k_j)) v_j and den_i = Σ_{j≤i} φ(q_i)·φ(k_j).
struct CausalSums {
  at::Tensor numerator;   // (B,H,N,d)
  at::Tensor denominator; // (B,H,N,1)
  at::Tensor reference;   // r of log-features below, (B,H,N,1), −∞ without any key; undefined for others
};

// The sums over the keys of the tokens so far, from which later tokens continue; empty before the first.
struct CausalState {
  at::Tensor sums;  // (B,H_k,f,d+1): Σ_j φ(k_j) [v_j, 1]ᵀ; log-features' divided by e^scale
  at::Tensor scale; // (B,H_k,1,f): the largest log-feature of each feature; undefined without logarithms
};

// query (B,H,N,f), key (B,H_k,N,f): feature values; v (B,H_k,N,d). The tokens follow those of `state`, if it
// is given, which afterwards includes them. O(N·f·d) time.
CausalSums causal_sums(const at::Tensor& query, const at::Tensor& key, const at::Tensor& v,
                       CausalState* state = nullptr);

// The same from log-features, each row scaled by exp(−r_i), r_i = max over j ≤ i and f of ℓ_f(q_i) +
// ℓ_f(k_j): exact whatever their range, since the scale of a key does not depend on later keys. `mask`
// (B,N) bool or undefined.
CausalSums causal_sums_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                     const at::Tensor& v, const at::Tensor& mask,
                                     CausalState* state = nullptr);

// Σ_f exp(ℓ_f(q_i) + ℓ_f(k_j) − r_i) over j ≤ rows_i, where r_i = max of ℓ_f(q_i) + ℓ_f(k_j) over all f and j
// ≤ rows_i: (B,H,R,N), from log_query (B,H,R,f), log_key (B,H,N,f). 0 for keys that are masked or later than
// the query's row, which is −1 for a query without any key. One matrix product or, where the range of the
// keys is too wide for that, every exponent by itself in tiles of rows.
struct CausalProducts {
  at::Tensor products;  // (B,H,R,N)
  at::Tensor reference; // r, (B,H,R,1), −∞ without any key
};
CausalProducts causal_products_of_logarithms(const at::Tensor& log_query, const at::Tensor& log_key,
                                             const at::Tensor& rows, const at::Tensor& mask);

} // namespace hydrascope
