// What the fused loops share with their callers, on the CPU and on the GPU: rows of features, ranges of
// tokens, feature maps. No LibTorch, no C++20.
#pragma once

#include <cstdint>

namespace hydrascope::cpu {

enum class Element { float32, bfloat16 };

// The D = heads · head_width features of tokens: feature f of head h of token t lies at
// data[t·token_stride + h·head_stride + f].
struct Rows {
  void* data = nullptr; // written by the loops only where the rows are their output
  Element element = Element::float32;
  std::int64_t heads = 1, head_width = 0, token_stride = 0, head_stride = 0; // no features by default

  std::int64_t width() const { return heads * head_width; }
};

struct TokenRange {
  std::int64_t first = 0, last = 0; // [first, last)
};

// Rows that are read or written later, to be requested from memory meanwhile: of k and v, or of q and out.
struct Upcoming {
  Rows first, second;
  TokenRange tokens;
};

// Tokens that are processed together: their intermediate results fit the second-level cache, and the error of
// a sum over many blocks does not grow with N.
constexpr std::int64_t tokens_of_block = 64;

// Calls use(TokenRange) for each block of a range.
template <typename Use>
void in_blocks(const TokenRange range, const Use& use) {
  for (std::int64_t first = range.first; first < range.last; first += tokens_of_block) {
    const std::int64_t last = first + tokens_of_block;
    use(TokenRange{first, last < range.last ? last : range.last});
  }
}

// Whole registers, whatever the processor: the loops' arrays of floats have padded_to_lanes(width) entries.
constexpr std::int64_t most_lanes = 16;
constexpr std::int64_t padded_to_lanes(const std::int64_t width) {
  return (width + most_lanes - 1) / most_lanes * most_lanes;
}

// φ(y), feature by feature.
enum class PointMap {
  plus_minus_exponential, // [e^y, e^−y]: twice as many features as y has entries
  exponential,            // e^y
  softmax,                // e^y / Σ e^y over the features of a token
  plus_minus_softmax,     // [softmax y, softmax −y]
  joint_softmax,          // softmax [y, −y]
  one_plus_elu,           // e^y below 0, 1 + y above
  relu,
  unit,                // y / max(‖y‖₂, 10⁻¹²)
  relu_token_weighted, // [ReLU(y) · a, ReLU(y) · b] with a token's own a and b
  taylor,              // [1, y, y_i y_j for i < j, y_i²/√2]: φ(y)·φ(y') = 1 + y·y' + (y·y')²/2
};

// Whether φ has two features for each entry of y.
constexpr bool has_two_halves(const PointMap map) {
  return map == PointMap::plus_minus_exponential || map == PointMap::plus_minus_softmax ||
         map == PointMap::joint_softmax || map == PointMap::relu_token_weighted;
}

} // namespace hydrascope::cpu
