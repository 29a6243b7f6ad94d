// Tensors as the kernels' launches take them, without LibTorch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/attention/cuda/program.h"
#include "tests/engine/attention/cuda_shapes.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope::testing_inputs {

template <typename T>
constexpr cuda::Element element_of() {
  if constexpr (std::is_same_v<T, float>)
    return cuda::Element::float32;
  else
    return std::is_same_v<T, __half> ? cuda::Element::float16 : cuda::Element::bfloat16;
}

inline std::vector<double> normal_numbers(const std::int64_t count, const unsigned seed,
                                          const double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, size);
  std::vector<double> result(static_cast<std::size_t>(count));
  std::generate(result.begin(), result.end(), [&] { return normal(random); });
  return result;
}

inline std::vector<float> as_floats(const std::vector<double>& values) {
  std::vector<float> result;
  for (const double value : values) result.push_back(static_cast<float>(value));
  return result;
}

// Rounds to T.
template <typename T>
void round_to(std::vector<double>& values) {
  for (double& value : values) value = static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
}

// Masks about a third of the tokens, the first among them, and the whole last sequence of several.
inline std::vector<unsigned char> mask_of(const CudaShape& shape) {
  std::vector<unsigned char> real(static_cast<std::size_t>(shape.batch * shape.tokens), 1);
  for (std::size_t i = 0; shape.masked && i < real.size(); i += 3) real[i] = 0;
  if (shape.masked && shape.batch > 1) std::fill(real.end() - shape.tokens, real.end(), std::uint8_t{0});
  return real;
}

// x (B,H,N,width) of which each token's heads lie side by side, as where q, k and v are one product. What
// lies between and before them is NaN. The buffer ends with the last entry, so that AddressSanitizer sees an
// access beyond it.
template <typename T>
class DeviceTensor {
public:
  DeviceTensor(const CudaShape& shape, const std::int64_t width, const std::int64_t gap,
               const std::int64_t first_ = 0)
      : heads(shape.heads),
        width_(width),
        first(first_),
        token_stride(shape.heads * width + gap),
        batch_stride(shape.tokens * token_stride + gap),
        buffer(static_cast<std::size_t>(first_ + (shape.batch - 1) * batch_stride +
                                        (shape.tokens - 1) * token_stride + shape.heads * width),
               T(std::numeric_limits<float>::quiet_NaN())) {}

  T& at(const std::int64_t b, const std::int64_t h, const std::int64_t t, const std::int64_t c) {
    return data()[b * batch_stride + t * token_stride + h * width_ + c];
  }
  T* data() { return buffer.data() + first; }
  const T* data() const { return buffer.data() + first; }
  // Sets the rows of real tokens to those of (B,H,N,width).
  void set(const std::vector<double>& values, const CudaShape& shape,
           const std::vector<unsigned char>& real) {
    std::size_t index = 0;
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t h = 0; h < shape.heads; ++h)
        for (std::int64_t t = 0; t < shape.tokens; ++t)
          for (std::int64_t c = 0; c < width_; ++c, ++index)
            if (real[static_cast<std::size_t>(b * shape.tokens + t)] != 0)
              at(b, h, t, c) = T(static_cast<float>(values[index]));
  }

  std::int64_t heads, width_, first, token_stride, batch_stride;
  std::vector<T> buffer;
};

// The largest |found − expected| over the largest |expected|, or by itself where 0 is expected of all;
// infinity if one of them alone is NaN.
template <typename T>
double relative_error(DeviceTensor<T>& found, const std::vector<double>& expected, const CudaShape& shape) {
  double worst = 0, largest = 0;
  std::size_t index = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b)
    for (std::int64_t h = 0; h < shape.heads; ++h)
      for (std::int64_t t = 0; t < shape.tokens; ++t)
        for (std::int64_t c = 0; c < found.width_; ++c, ++index) {
          const double value = static_cast<double>(static_cast<float>(found.at(b, h, t, c)));
          if (std::isnan(value) && std::isnan(expected[index])) continue;
          worst = std::max(worst, error_of(value, expected[index]));
          largest = std::max(largest, std::abs(expected[index]));
        }
  return largest > 1e-12 ? worst / largest : worst;
}

} // namespace hydrascope::testing_inputs
