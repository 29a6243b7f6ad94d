// Rotary position embeddings (Su et al. 2021, Eq. 34): features i and i + d/2 are rotated together by an
// angle that grows with the position, so that the product of a query and a key depends on their distance
// only.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/models/transformer/config.h"

namespace hydrascope {

// The angle per position of each of the d/2 pairs of features: base^(−2i/d), scaled as the configuration
// says.
std::vector<double> rotary_frequencies(const RotaryConfig& config, std::int64_t head_width);

// Safe to call from several threads.
class Rotary {
public:
  // For at most `tokens` positions and an even head width d, on the device of the model.
  Rotary(const RotaryConfig& config, std::int64_t tokens, std::int64_t head_width, at::Device device);
  Rotary(const Rotary&) = delete;
  Rotary& operator=(const Rotary&) = delete;

  // x (B,H,N,d) of the tokens at `positions` (N) int64; undefined: `first` … first + N − 1. → (B,H,N,d).
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& positions = {}, std::int64_t first = 0) const;
  // In place, of one token at `position`: x (heads,d) on the CPU, d as in the constructor.
  void rotate_token(float* x, std::int64_t heads, std::int64_t position) const;

private:
  struct Table {
    at::Tensor cosine, sine; // (tokens,d) float32, the sine of the first half negative
  };
  // Of at least so many tokens; grows on demand, because few texts are as long as the model allows.
  Table table(std::int64_t tokens) const;

  std::vector<double> frequencies_;
  std::int64_t tokens_;
  at::Device device_;
  mutable std::mutex mutex_;
  mutable Table table_;
};

} // namespace hydrascope
