// Hydra's two passes over the tokens of one sequence, each of which reads its rows once (Bolya et al. 2022,
// Eq. 10):
//   g = Σ_t φ_K(K)_t ⊙ V_t   and then   out_t = φ_Q(Q)_t ⊙ g.
// No LibTorch.
#pragma once

#include <vector>

#include "engine/attention/simd/loop_types.h"
#include "engine/attention/simd/processor.h"

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

// sum[f] = Σ over the range's real tokens of φ(k)_f · v_f. mask: a byte per token, 0 = masked; null: all
// real. Masked tokens are not read. Sums of 64 tokens are added to the total, so that the error does not grow
// with N.
void hydra_sum(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, RowMap map,
               float scale, float* sum);

// The same where φ_K is a softmax over tokens, feature by feature: the largest k, Σ e^(k − largest) and
// Σ e^(k − largest) · v of the range's real tokens; −∞, 0 and 0 without any.
void hydra_softmax_sums(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range,
                        float* largest, float* total, float* weighted);

// out_t = φ(q)_t ⊙ sum for the tokens of the range, 0 where masked. `out` may have another element type than
// q. past_caches: writes `out` past the caches where the processor can; faster for sequences that do not fit
// them.
void hydra_gate(const Rows& q, const unsigned char* mask, TokenRange range, RowMap map, float scale,
                const float* sum, const Rows& out, bool past_caches);

// The causal form: what is known of the tokens so far.
struct CausalHydraSums {
  explicit CausalHydraSums(std::int64_t width, bool softmax);

  // Without softmax: Σ φ(k) ⊙ v; the last up to 64 tokens apart, so that the error does not grow with N.
  std::vector<float> sum, part;
  std::vector<float> largest, total, weighted; // with softmax, as of hydra_softmax_sums()
  std::int64_t tokens = 0;                     // real ones
};

// The maps of one kernel. mean: outputs are divided by the number of real tokens so far. softmax: φ_K is a
// softmax over the tokens so far, and `key` is not used.
struct CausalHydraMaps {
  RowMap query = RowMap::scaled, key = RowMap::scaled;
  bool mean = false, softmax = false;
};

// Adds one token after the other of a range and writes its output, φ(q) ⊙ the sum that holds the token
// itself; 0 where masked.
void causal_hydra(const Rows& q, const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range,
                  const CausalHydraMaps& maps, const Rows& out, CausalHydraSums& sums);

// The loops behind these functions. `buffers` holds two rows, three for softmax, zero beyond the D features.
struct HydraLoops {
  // Adds the range's tokens to `sum`.
  void (*sum)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, RowMap map,
              float scale, float* buffers, float* sum);
  // Adds `part` to `sum` and clears `part`.
  void (*add)(float* sum, float* part, std::int64_t padded);
  // Updates the running maximum, and the sums relative to it, with the range's tokens.
  void (*softmax)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, float* buffers,
                  float* largest, float* total, float* weighted);
  void (*gate)(const Rows& q, const unsigned char* mask, TokenRange range, RowMap map, float scale,
               const float* sum, const Rows& out, bool past_caches, float* buffers);
  // One real token: its output, for which the sums hold it. scale: of φ(q). buffers: four rows.
  void (*causal)(const Rows& q, const Rows& k, const Rows& v, std::int64_t token, RowMap query, RowMap key,
                 float scale, float* buffers, const float* sum, float* part, const Rows& out);
  void (*causal_softmax)(const Rows& q, const Rows& k, const Rows& v, std::int64_t token, RowMap query,
                         float* buffers, float* largest, float* total, float* weighted, const Rows& out);
};
HYDRASCOPE_LOOPS(HydraLoops, hydra_loops)

} // namespace hydrascope::cpu
