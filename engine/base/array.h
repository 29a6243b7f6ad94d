// A float32 array in row-major order, for numbers outside the files that use LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hydrascope {

struct Array {
  std::vector<std::int64_t> shape;
  std::vector<float> values; // product of shape entries, row-major

  bool empty() const { return values.empty(); }
  std::int64_t extent(std::size_t axis) const { return shape.at(axis); }

  // The contiguous sub-array at `index` of the first axis, e.g. one head of (H,N,N).
  std::span<const float> slice(std::int64_t index) const {
    const auto length =
        shape.empty() || shape[0] == 0 ? 0 : values.size() / static_cast<std::size_t>(shape[0]);
    return std::span<const float>(values).subspan(static_cast<std::size_t>(index) * length, length);
  }
};

struct NamedArray {
  std::string name;
  Array array;
};

} // namespace hydrascope
