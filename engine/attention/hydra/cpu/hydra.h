// Hydra's two passes over the tokens of one sequence, each reading its rows once (Bolya et al. 2022, Eq. 10):
//   g = Σ_t φ_K(K)_t ⊙ V_t   and then   out_t = φ_Q(Q)_t ⊙ g.
// Compiled for AVX-512, for AVX2 and for any processor; the best that the machine runs is taken. No LibTorch.
#pragma once

#include "engine/attention/simd/rows.h"

namespace hydrascope::cpu {

enum class RowMap {
  scaled,     // x · scale
  unit_l2,    // x / ‖x‖₂ over all D features
  unit_l1,    // x / ‖x‖₁
  hyperbolic, // tanh x
  logistic,   // 1 / (1 + e⁻ˣ)
};

// D rounded up to whole vector registers: the length of every array of floats below.
std::int64_t padded_width(std::int64_t width);

// sum[f] = Σ over the range's real tokens of φ(k)_f · v_f. mask: a byte a token, 0 = masked; null: all real.
// Masked tokens are not looked at. Sums of 64 tokens are added to the whole, so that the error does not grow
// with N.
void hydra_sum(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, RowMap map,
               float scale, float* sum);

// The same with φ_K = a softmax over tokens, feature by feature: the largest k, Σ e^(k − largest) and
// Σ e^(k − largest) · v of the range's real tokens; −∞, 0 and 0 where there is none.
void hydra_softmax_sums(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range,
                        float* largest, float* total, float* weighted);

// out_t = φ(q)_t ⊙ sum for the tokens of the range, 0 where masked. `out` may hold another element than q.
// past_caches: write it to memory directly, where the processor can. Worth it for sequences that do not fit
// the caches, so that little of `out` would be found there by whoever reads it next.
void hydra_gate(const Rows& q, const unsigned char* mask, TokenRange range, RowMap map, float scale,
                const float* sum, const Rows& out, bool past_caches);

} // namespace hydrascope::cpu
