// Linear attention with Hedgehog's map for heads of 64 features in a half type. Where linear_programs.h keeps
// features in shared memory, here they stay in registers: what one product on the tensor cores gives is, once
// it is rounded, the left factor of the next (warp_matrix.cuh).
//
// y is in units of log 2: log₂e and the map's scale are multiplied into W, which is the sum of two matrices
// of the half type, so that it is as good as in float32 beside inputs that have the half type's precision.
#pragma once

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/cuda/warp_matrix.cuh"
#include "engine/attention/linear/cuda/fixed_width.h"
#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {
namespace {

constexpr int width = 64; // of a head, and of y
constexpr int signs = 2;  // of y in φ
constexpr int features = signs * width;
constexpr int stride = width + 8; // of rows in shared memory: eight of them lie in different banks
constexpr int pieces = width / 8; // of 16 bytes, of a row
constexpr int steps = width / 16; // of a product over 64
constexpr int squares = width / 8;
constexpr int group_tokens = 16; // that a warp works on at a time
constexpr float log2_e = 1.44269504f;

template <typename T>
struct Rows {
  const T* data;
  std::int64_t token_stride;
  __device__ Rows(const HeadsOnDevice& x, const std::int64_t b, const std::int64_t h)
      : data(static_cast<const T*>(x.data) + b * x.batch_stride + h * x.head_stride),
        token_stride(x.token_stride) {}
  const __device__ T* piece(const std::int64_t token, const int index) const {
    return data + token * token_stride + index * 8;
  }
};

// log₂e · scale · W of a head; y is that of x without the bias.
struct Weight {
  const float* of_head; // null: the identity
  float scale;
  __device__ Weight(const SideArguments& side, const std::int64_t h)
      : of_head(side.weight == nullptr ? nullptr : side.weight + h * side.weight_stride),
        scale(side.scale * log2_e) {}
  __device__ float operator()(const int input, const int output) const {
    const float own = of_head == nullptr ? (input == output ? 1.0f : 0.0f) : of_head[input * width + output];
    return own * scale;
  }
};
// What the bias adds to log φ of a feature.
__device__ float bias_of(const SideArguments& side, const std::int64_t h, const int feature) {
  if (side.bias == nullptr) return 0.0f;
  const float bias = side.scale * side.bias[h * width + feature % width];
  return feature < width ? bias : -bias;
}

// Row and column of entry i of a lane in a product.
__device__ int row_of(const int lane, const int i) { return lane / 4 + i / 2 * 8; }
__device__ int column_of(const int lane, const int i) { return lane % 4 * 2 + i % 2; }

// Two products of 16 × 8 side by side, rounded, as a left factor of 16 × 16.
template <typename T>
__device__ void as_left_factor(const float (&left)[4], const float (&right)[4], Pair (&to)[4]) {
  to[0] = pair_of<T>(left[0], left[1]);
  to[1] = pair_of<T>(left[2], left[3]);
  to[2] = pair_of<T>(right[0], right[1]);
  to[3] = pair_of<T>(right[2], right[3]);
}

bool takes(const LinearArguments& a, const SideArguments& side) {
  return a.map == cpu::PointMap::plus_minus_exponential && a.normalised && a.element != Element::float32 &&
         a.input_element == a.element && a.head_width == width && a.inputs == width && a.outputs == width &&
         side.half_square == 0;
}
bool aligned(const HeadsOnDevice& x) {
  return at_16_bytes(x.data) && x.batch_stride % 8 == 0 && x.head_stride % 8 == 0 && x.token_stride % 8 == 0;
}

dim3 grid_of(const LinearArguments& a, const std::int64_t x) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(a.heads), static_cast<unsigned>(a.batch));
}

} // namespace
} // namespace hydrascope::cuda
