// Linear attention of one head without storing its features (Hedgehog paper, Eq. 2):
//   S = Σ_j φ(k_j) v_jᵀ, z = Σ_j φ(k_j)   and then   out_i = φ(q_i)·S / φ(q_i)·z,
// or without the denominator (Hydra paper, Eq. 7). The causal form sums over j ≤ i.
// Tokens are processed in blocks: the features of a block are computed and consumed within the first caches.
// No LibTorch.
#pragma once

#include <span>
#include <vector>

#include "engine/attention/simd/loop_types.h"
#include "engine/attention/simd/processor.h"

namespace hydrascope::cpu {

// taylor's products of sixteen y with each other: the squares, and each of the others once.
constexpr std::int64_t taylor_own_features = (1 + most_lanes / 2) * most_lanes;

// φ of one head's queries or keys: y = scale · (x·W + b) − half_square · ‖x‖². Exponential maps are divided
// by the largest of each feature over the keys, which cancels in the quotient.
struct LinearMap {
  PointMap map = PointMap::exponential;
  std::int64_t head_width = 1;   // d
  std::int64_t outputs = 1;      // entries of y; d without W
  const float* weight = nullptr; // (d, outputs padded to lanes); null: W = I
  const float* bias = nullptr;   // (outputs padded to lanes); null: 0
  float scale = 1, half_square = 0;
  bool normalised = true;               // whether the output is divided by φ(q_i)·z
  const float* token_weights = nullptr; // (tokens,2): a and b of relu_token_weighted
  // (tokens,2), of queries whose outputs are not divided: φ(q)·z, and the logarithm of what it and the
  // outputs were divided by instead.
  float* sums = nullptr;

  // The padded length of a row of features. The second half begins at a whole lane, and so does each part of
  // taylor's (linear_taylor.h).
  std::int64_t features() const;
  // The number of features that are computed at once, at most.
  std::int64_t features_at_once() const;
  // The numbers of a token that products of a block's queries and keys take: its features; y of taylor.
  std::int64_t turned_rows() const;
};

// The sums over a head's keys.
struct KeySums {
  KeySums(const LinearMap& map, std::int64_t value_width);

  std::vector<float> values; // S: (features, d padded)
  std::vector<float> totals; // z: (features)
  // The largest log-feature so far, −∞ without keys; 0 for maps without an exponential.
  std::vector<float> largest;
};

// The keys of a head, and the sums that they are added to.
struct KeyHead {
  Rows k, v;
  LinearMap map;
  KeySums* sums = nullptr;
};

// The queries of a head, the sums over its keys, and its outputs.
struct QueryHead {
  Rows q;
  LinearMap map;
  const KeySums* sums = nullptr;
  Rows out;
};

// Adds the real keys of a range, a few blocks of all heads at a time: the heads of a token, which mostly lie
// side by side, come from memory together. mask: a byte per token, 0 = masked; null: all real. Masked keys
// are not read. Products are of numbers rounded to bfloat16 and summed in float32 where the processor has
// these.
void add_keys(std::span<const KeyHead> heads, const unsigned char* mask, TokenRange range,
              Processor processor);

// Adds the sums of other keys.
void add_sums(KeySums& sums, const KeySums& others);
// Merges the sums of all ranges into the first, ready for linear_outputs(): `largest` becomes 0 for features
// that no key has.
void merge(std::span<KeySums> parts);

// out_i of a range's tokens, 0 where masked or where φ(q_i)·z is 0, of all heads as above. Returns the number
// of real tokens whose φ(q_i)·z is 0, of all heads together.
std::int64_t linear_outputs(std::span<const QueryHead> heads, const unsigned char* mask, TokenRange range,
                            Processor processor);

// The queries of a head and their outputs.
struct CausalQueries {
  Rows q;
  LinearMap map;
  Rows out;
};

// The causal form for the heads that share a key/value head: out_i of a range's tokens from the keys in
// `sums` and those of the range up to i; then `sums` holds the range's keys as well. Masked tokens as above.
// Products are of floats. Exact whatever the range of the log-features. Returns the number of real tokens
// whose φ(q_i)·z is 0, of all heads together.
std::int64_t causal_outputs(const Rows& k, const Rows& v, std::span<const CausalQueries> queries,
                            const unsigned char* mask, TokenRange range, const LinearMap& key_map,
                            KeySums& sums, Processor processor = best_processor(false));

// The loops behind these functions.
struct LinearLoops {
  // add_keys() and linear_outputs() of one head. next: only requested from memory; {}: nothing. `buffers`:
  // buffer_floats().
  void (*add_keys)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange range,
                   const LinearMap& map, const Upcoming& next, float* buffers, float* values, float* totals,
                   float* largest);
  std::int64_t (*outputs)(const Rows& q, const unsigned char* mask, TokenRange range, const LinearMap& map,
                          const float* values, const float* totals, const float* largest,
                          const Upcoming& next, float* buffers, const Rows& out);
  // The causal form of a block of up to tokens_of_block tokens: its keys, whose features are kept in
  // `key_buffers`, rescale the sums; then the outputs of every head; then the keys are added. The first
  // returns false, and does nothing, where the log-features grow too much within the block to be divided by
  // one number. key_buffers: causal_key_floats(), buffers: causal_query_floats().
  bool (*causal_keys)(const Rows& k, const Rows& v, const unsigned char* mask, TokenRange block,
                      const LinearMap& map, float* key_buffers, float* values, float* totals, float* largest);
  std::int64_t (*causal_outputs)(const Rows& q, const unsigned char* mask, TokenRange block,
                                 const LinearMap& map, const LinearMap& key_map, float* key_buffers,
                                 const float* values, const float* totals, const float* largest,
                                 float* buffers, const Rows& out);
  void (*add_causal_keys)(const unsigned char* mask, TokenRange block, const LinearMap& map,
                          std::int64_t value_width, float* key_buffers, float* values, float* totals);
};
std::int64_t buffer_floats(const LinearMap& map, std::int64_t value_width);
std::int64_t causal_key_floats(const LinearMap& map, std::int64_t value_width);
std::int64_t causal_query_floats(const LinearMap& map, std::int64_t value_width);
HYDRASCOPE_LOOPS(LinearLoops, linear_loops)

} // namespace hydrascope::cpu
