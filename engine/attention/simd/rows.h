// Where the fused loops find a sequence's features. No LibTorch.
#pragma once

#include <cstdint>

namespace hydrascope::cpu {

enum class Element { float32, bfloat16 };

// The D = heads · head_width features of tokens: feature f of head h of token t lies at
// data[t·token_stride + h·head_stride + f].
struct Rows {
  void* data = nullptr; // only read, but for those that a loop writes
  Element element = Element::float32;
  std::int64_t heads = 1, head_width = 1, token_stride = 0, head_stride = 0;

  std::int64_t width() const { return heads * head_width; }
};

struct TokenRange {
  std::int64_t first = 0, last = 0; // [first, last)
};

// Tokens that are taken together: what is made of them fills no more than the second cache, and the error of
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

// Whole registers: arrays of floats for the loops have padded_to_lanes(width) entries.
constexpr std::int64_t lane_count = 16;
constexpr std::int64_t padded_to_lanes(const std::int64_t width) {
  return (width + lane_count - 1) / lane_count * lane_count;
}

} // namespace hydrascope::cpu
