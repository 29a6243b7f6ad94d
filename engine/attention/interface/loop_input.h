// Attention inputs for the CPU's fused loops (simd/loop_types.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope {

// Whether the fused loops support the input: float32 or bfloat16 on the CPU, without gradients.
bool loops_take(const AttentionShape& shape);

// x (B,H,N,d) with the features of each head contiguous; x itself where they are.
at::Tensor dense_features(const at::Tensor& x);

// The rows of one sequence of x (B,H,N,d), dense as above: of all heads, or of one.
cpu::Rows rows_of(const at::Tensor& x, std::int64_t sequence);
cpu::Rows rows_of(const at::Tensor& x, std::int64_t sequence, std::int64_t head);

// A mask (B,N) bool, or undefined: all real.
class LoopMask {
public:
  explicit LoopMask(const at::Tensor& mask);

  const unsigned char* of(std::int64_t sequence) const; // null: all real
  // Real tokens of a sequence of `tokens`, or in a range of it.
  std::int64_t count(std::int64_t sequence, std::int64_t tokens) const;
  std::int64_t count(std::int64_t sequence, const cpu::TokenRange& range) const;

private:
  at::Tensor bytes_; // dense
};

// The projection before φ on one side: y = scale · (x·W + b) − half_square · ‖x‖².
struct LoopProjection {
  at::Tensor weight = {}; // (H,d,m) or, one for all heads, (1,d,m); undefined: the identity
  at::Tensor bias = {};   // (H,m); undefined: 0
  double scale = 1, half_square = 0;
  // (B,N,2) or, the same for all sequences, (1,N,2): a and b of PointMap::relu_token_weighted.
  at::Tensor token_weights = {};
};

} // namespace hydrascope
