// The keys and values of the tokens so far, for decoding with the softmax family.
#pragma once

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// Σ_j e^(s_j − reference) v_j and Σ_j e^(s_j − reference) of one query of every head, in float32 (float64
// where the cache is): what softmax attention divides, and sums over other keys can be added to.
struct SoftmaxSums {
  at::Tensor numerator;              // (B,H,1,d)
  at::Tensor denominator, reference; // (B,H,1,1)
};

// Keys and values (B,H_k,tokens,d) in numbered slots, each once for all heads that share it. On the CPU in
// the layout of the fused loops (cpu/cache.h).
class KeyValueCache {
public:
  // Of the heads, width, type and device of `shape`; `expected`: as many slots are reserved at first.
  KeyValueCache(const AttentionShape& shape, std::int64_t key_heads, std::int64_t head_width,
                std::int64_t expected);
  KeyValueCache clone() const; // of memory of its own

  // Writes k and v (B,H_k,R,d) to the slots from `first` on, for which memory is taken as needed: twice as
  // much each time.
  void write(const at::Tensor& k, const at::Tensor& v, std::int64_t first);
  // The keys and values in the slots [first, last): (B,H_k,last − first,d).
  at::Tensor keys(std::int64_t first, std::int64_t last) const;
  at::Tensor values(std::int64_t first, std::int64_t last) const;

  // q (B,H,1,d), H a multiple of H_k: softmax(q kᵀ/√d) v over the slots [0, count), (B,H,1,d) in q's type;
  // and its sums. Reads every key and value once.
  at::Tensor attend(const at::Tensor& q, std::int64_t count) const;
  SoftmaxSums sums(const at::Tensor& q, std::int64_t count) const;

  // Bytes of the keys and values of `count` tokens.
  std::int64_t bytes(std::int64_t count) const;

private:
  // Of a packed cache, by key/value head with its G = H/H_k queries: numerator (B·H_k,G,1,d padded to lanes),
  // denominator and reference (B·H_k,G,1,1).
  SoftmaxSums sums_in_loops(const at::Tensor& q, std::int64_t count) const;
  // Writes one token to a packed cache.
  template <typename Number>
  void write_token(const at::Tensor& k, const at::Tensor& v, std::int64_t slot);
  void reserve(std::int64_t slots);

  std::int64_t batch_, heads_, width_;
  at::TensorOptions options_;
  bool packed_;
  std::int64_t capacity_ = 0;
  at::Tensor keys_;   // (B,H_k,capacity,d); packed: (B,H_k,tiles,d,T)
  at::Tensor values_; // (B,H_k,capacity,d); packed: rows padded to lanes
};

// The keys and values of the last `size` tokens of growing sequences; 0: of all. A token's slot is its number
// modulo the size.
class RecentTokens {
public:
  RecentTokens(const AttentionShape& shape, std::int64_t key_heads, std::int64_t head_width,
               std::int64_t size);
  RecentTokens clone() const { return {cache_.clone(), size_}; }

  // Writes k and v (B,H_k,R,d) of the tokens from `first` on, of which the last `size` are kept.
  void write(const at::Tensor& k, const at::Tensor& v, std::int64_t first);
  // Those of the tokens [first, last), which have to be kept, in their order: (B,H_k,last − first,d).
  at::Tensor keys(std::int64_t first, std::int64_t last) const { return read(first, last, true); }
  at::Tensor values(std::int64_t first, std::int64_t last) const { return read(first, last, false); }
  const KeyValueCache& slots() const { return cache_; }

private:
  RecentTokens(KeyValueCache cache, std::int64_t size) : cache_(std::move(cache)), size_(size) {}
  at::Tensor read(std::int64_t first, std::int64_t last, bool keys) const;
  std::int64_t slot(std::int64_t token) const { return size_ == 0 ? token : token % size_; }

  KeyValueCache cache_;
  std::int64_t size_;
};

} // namespace hydrascope
