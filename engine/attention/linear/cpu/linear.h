// Linear attention of one head without its features ever stored (Hedgehog paper, Eq. 2):
//   S = Σ_j φ(k_j) v_jᵀ, z = Σ_j φ(k_j)   and then   out_i = φ(q_i)·S / φ(q_i)·z,
// or without the denominator (Hydra paper, Eq. 7).
// Tokens are taken in blocks: each block's features are made in the first caches and used up there. Compiled
// for AVX-512 with bfloat16 products, for AVX-512, for AVX2 and for any processor; the best that the machine
// runs is taken. No LibTorch.
#pragma once

#include <span>
#include <vector>

#include "engine/attention/simd/point_map.h"
#include "engine/attention/simd/rows.h"

namespace hydrascope::cpu {

// φ of one head's queries or keys: y = scale · (x·W + b) − half_square · ‖x‖². Exponential maps are divided
// by the largest of each feature over the keys, which cancels in the quotient.
struct LinearMap {
  PointMap map = PointMap::exponential;
  std::int64_t head_width = 1;   // d
  std::int64_t outputs = 1;      // entries of y; d without W
  const float* weight = nullptr; // (d, outputs padded to lanes); null: W = I
  const float* bias = nullptr;   // (outputs padded to lanes); null: 0
  float scale = 1, half_square = 0;
  bool normalised = true;       // whether the output is divided by φ(q_i)·z
  const float* turns = nullptr; // (tokens,2): a and b of relu_turned

  // Length of a row of features, padded: the second half begins at a whole lane,
  // and so does each part of taylor's: the 1, y, and for every i the products with y_j from i's own lanes on.
  std::int64_t features() const;
  // As many of them as are made at once.
  std::int64_t features_at_once() const {
    return map == PointMap::taylor ? padded_to_lanes(outputs) : features();
  }
};

// What a head's keys come to.
struct KeySums {
  KeySums(const LinearMap& map, std::int64_t value_width);

  std::vector<float> values; // S: (features, d padded)
  std::vector<float> ones;   // z: (features)
  std::vector<float>
      largest; // the largest log-feature so far, −∞ before any; of maps without an exponential 0
};

// Adds the real keys of a range. mask: a byte a token, 0 = masked; null: all real. Masked keys are not looked
// at. bfloat16: products of numbers rounded to it, summed in float32, where the processor has them.
void add_keys(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range, const LinearMap& map,
              bool bfloat16, KeySums& sums);

// Leaves in the first what the keys of all ranges come to, ready for `answer`: a feature that no key has gets
// the largest 0.
void merge(std::span<KeySums> parts);

// out_i of a range's tokens, 0 where masked or where φ(q_i)·z is 0. How many real tokens have no z.
std::int64_t answer(const Rows& q, const unsigned char* mask, TokenRange range, const LinearMap& map,
                    bool bfloat16, const KeySums& sums, const Rows& out);

} // namespace hydrascope::cpu
