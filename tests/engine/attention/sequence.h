// One sequence's features for the fused loops' tests, without LibTorch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/attention/simd/loop_types.h"

namespace hydrascope::testing_inputs {

// One sequence, its heads one after another (H,N,d), as floats and rounded to bfloat16.
struct Sequence {
  Sequence(std::int64_t heads_, std::int64_t tokens_, std::int64_t width_, double phase)
      : heads(heads_), tokens(tokens_), width(width_) {
    for (std::int64_t i = 0; i < heads * tokens * width; ++i) {
      const double x = 3 * std::sin(1.7 * static_cast<double>(i) + phase);
      std::uint32_t bits = 0;
      const auto value = static_cast<float>(x);
      std::memcpy(&bits, &value, sizeof bits);
      halves.push_back(static_cast<std::uint16_t>(bits >> 16));
      bits &= 0xffff0000U; // the same numbers in both
      float exact = 0;
      std::memcpy(&exact, &bits, sizeof exact);
      floats.push_back(exact);
    }
  }
  cpu::Rows rows(cpu::Element element) {
    return {.data = element == cpu::Element::float32 ? static_cast<void*>(floats.data()) : halves.data(),
            .element = element,
            .heads = heads,
            .head_width = width,
            .token_stride = width,
            .head_stride = tokens * width};
  }
  double at(std::int64_t token, std::int64_t feature) const {
    const std::int64_t head = feature / width;
    return floats[static_cast<std::size_t>((head * tokens + token) * width + feature % width)];
  }

  std::int64_t heads, tokens, width;
  std::vector<float> floats;
  std::vector<std::uint16_t> halves;
};

// |found − expected|; infinity for what is not a number, which no maximum or comparison would see.
inline double error_of(double found, double expected) {
  const double error = std::abs(found - expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// The second head of a sequence.
inline cpu::Rows head_of(Sequence& x, cpu::Element element) {
  cpu::Rows rows = x.rows(element);
  rows.heads = 1;
  const std::int64_t bytes = element == cpu::Element::float32 ? sizeof(float) : sizeof(std::uint16_t);
  rows.data = static_cast<std::byte*>(rows.data) + rows.head_stride * bytes;
  return rows;
}

inline std::vector<unsigned char> every_third_masked(std::int64_t tokens) {
  std::vector<unsigned char> mask(static_cast<std::size_t>(tokens), 1);
  for (std::size_t token = 0; token < mask.size(); token += 3) mask[token] = 0;
  return mask;
}

} // namespace hydrascope::testing_inputs
