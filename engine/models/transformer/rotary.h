// Rotary position embeddings.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hydrascope {

// Su et al. (2021), Eq. 34; base 10,000; features i and i + d/2 are turned together: x (B,H,N,d), d even, of
// tokens 0 … N−1, N ≤ `tokens`. Products of a turned query and a turned key depend on their distance only.
class Rotary {
public:
  Rotary(std::int64_t tokens, std::int64_t head_width);
  at::Tensor operator()(const at::Tensor& x) const;

private:
  at::Tensor cosine_, sine_; // (tokens,d), the sine of the first half negative
};

} // namespace hydrascope
