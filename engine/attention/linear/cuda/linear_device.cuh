// The common part of linear.cu and linear_gradient.cu: products on the tensor cores, launches. Half types are
// multiplied on the tensor cores and added in float32; float32 is multiplied without them. Masked tokens are
// skipped before they are read: they may hold NaN.
#pragma once

#include <cuda_runtime.h>
#include <mma.h>

#include <type_traits>

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/linear/cuda/linear_gradient_programs.h"
#include "engine/attention/linear/cuda/linear_programs.h"
#include "engine/attention/linear/cuda/linear_tile.h"

namespace hydrascope::cuda {
namespace {

constexpr int warps = block_threads / warp_threads;

// Whether all rows, `width` entries long, begin and end at multiples of 16 bytes.
template <typename T>
__device__ bool in_pieces(const T* const data, const std::int64_t stride, const int width) {
  constexpr int count = 16 / sizeof(T);
  return at_16_bytes(data) && stride % count == 0 && width % count == 0;
}

// A head of one sequence as float32, entry by entry or by pieces.
template <typename T>
struct RowReader {
  static constexpr int count = 16 / sizeof(T); // entries of a piece
  const T* data;
  std::int64_t stride;
  bool by_pieces;
  __device__ float operator()(const std::int64_t token, const int c) const {
    return to_float(data[token * stride + c]);
  }
  __device__ void piece(const std::int64_t token, const int c, float (&to)[count]) const {
    const auto piece = *reinterpret_cast<const Piece<T, count>*>(data + token * stride + c);
    HYDRASCOPE_UNROLL
    for (int i = 0; i < count; ++i) to[i] = to_float(piece.at[i]);
  }
};
template <typename T>
struct RowWriter {
  static constexpr int count = 16 / sizeof(T);
  T* data;
  std::int64_t stride;
  int width;
  bool by_pieces;
  __device__ void operator()(const std::int64_t token, const int c, const float value) const {
    data[token * stride + c] = from_float<T>(value);
  }
  __device__ void piece(const std::int64_t token, const int c, const float* const values) const {
    Piece<T, count> piece;
    HYDRASCOPE_UNROLL
    for (int i = 0; i < count; ++i) piece.at[i] = from_float<T>(values[i]);
    store(data + token * stride + c, piece);
  }
  // Writes the entries from c to the row's end.
  __device__ void operator()(const std::int64_t token, const int c,
                             const float (&values)[columns_of_thread]) const {
    HYDRASCOPE_UNROLL
    for (int i = 0; i < columns_of_thread; ++i) {
      if (c + i >= width) return;
      if (!by_pieces)
        (*this)(token, c + i, values[i]);
      else if (i % count == 0)
        piece(token, c + i, values + i);
    }
  }
};

// (32, width) floats in rows of `stride` as (32, padded) of T, padded with 0.
template <typename T>
__device__ void to_half(DeviceBlock& block, const float* const from, const int width, const int stride,
                        T* const to) {
  block.each([&](const int thread) {
    if (stride == padded(width)) { // what pads them is 0
      constexpr int count = 16 / sizeof(T);
      for (int i = thread * count; i < tile_tokens * stride; i += block_threads * count) {
        float values[count];
        get_floats(from + i, values);
        Piece<T, count> piece;
        HYDRASCOPE_UNROLL
        for (int j = 0; j < count; ++j) piece.at[j] = from_float<T>(values[j]);
        *reinterpret_cast<Piece<T, count>*>(to + i) = piece;
      }
      return;
    }
    each_entry(thread, tile_tokens, padded(width), [&](const int t, const int c) {
      to[t * padded(width) + c] = from_float<T>(c < width ? from[t * stride + c] : 0.0f);
    });
  });
}

namespace mma = nvcuda::wmma;
template <typename T, typename Layout>
using Left = mma::fragment<mma::matrix_a, lanes, lanes, lanes, T, Layout>;
template <typename T, typename Layout>
using Right = mma::fragment<mma::matrix_b, lanes, lanes, lanes, T, Layout>;
using Squares = mma::fragment<mma::accumulator, lanes, lanes, lanes, float>;

// The first element of the i-th square of results of this thread's warp; none if f is beyond the features.
struct Square {
  int f, c;
};
__device__ Square square_of(const HeadMap& map, const int i) {
  const int square = static_cast<int>(threadIdx.x) / warp_threads + warps * i,
            across = padded(map.width) / lanes;
  return {square / across * lanes, square % across * lanes};
}

// featuresᵀ · value on the tensor cores, up to `squares` squares of results a warp.
template <typename T, int squares>
struct TensorKeys {
  Squares results[squares];

  __device__ TensorKeys() {
    for (int i = 0; i < squares; ++i) mma::fill_fragment(results[i], 0.0f);
  }

  __device__ void add(DeviceBlock& block, const HeadMap& map, const Tile& tile) {
    // x and y are free. A row of y, 4m bytes, holds 2m halves; a row of x as many as one of value.
    T* const features = reinterpret_cast<T*>(tile.y);
    T* const value = reinterpret_cast<T*>(tile.x);
    to_half(block, tile.features, map.features, map.features, features);
    to_half(block, tile.value, map.width, padded(map.width), value);
    const int rows = padded(map.features), columns = padded(map.width);
    HYDRASCOPE_UNROLL
    for (int i = 0; i < squares; ++i) {
      const Square at = square_of(map, i);
      if (at.f >= rows) continue;
      for (int t = 0; t < tile_tokens; t += lanes) {
        Left<T, mma::col_major> left;
        Right<T, mma::row_major> right;
        mma::load_matrix_sync(left, features + t * rows + at.f, rows);
        mma::load_matrix_sync(right, value + t * columns + at.c, columns);
        mma::mma_sync(results[i], left, right, results[i]);
      }
    }
    __syncthreads(); // before the next tokens overwrite them
  }

  __device__ void write(DeviceBlock&, const HeadMap& map, float* const to) {
    const int columns = padded(map.width);
    HYDRASCOPE_UNROLL
    for (int i = 0; i < squares; ++i) {
      const Square at = square_of(map, i);
      if (at.f < padded(map.features))
        mma::store_matrix_sync(to + at.f * columns + at.c, results[i], columns, mma::mem_row_major);
    }
  }
};

// to (32, across) = from (32, depth) · B on the tensor cores, where B (depth, across) is `means` or, with
// col_major, its transpose; rows of `means` are `stride` long. With `rests`, what `means` have rounded off, B
// is the sum of both.
template <typename Layout, typename T>
__device__ void times_means(const T* const from, const int depth, const int across, const T* const means,
                            const T* const rests, const int stride, float* const to) {
  constexpr bool transposed = std::is_same_v<Layout, mma::col_major>;
  for (int square = static_cast<int>(threadIdx.x) / warp_threads;
       square < tile_tokens / lanes * (across / lanes); square += warps) {
    const int t = square / (across / lanes) * lanes, j = square % (across / lanes) * lanes;
    Squares result;
    mma::fill_fragment(result, 0.0f);
    for (int i = 0; i < depth; i += lanes) {
      Left<T, mma::row_major> left;
      Right<T, Layout> right;
      mma::load_matrix_sync(left, from + t * depth + i, depth);
      const int first = transposed ? j * stride + i : i * stride + j;
      mma::load_matrix_sync(right, means + first, stride);
      mma::mma_sync(result, left, right, result);
      if (rests == nullptr) continue;
      mma::load_matrix_sync(right, rests + first, stride);
      mma::mma_sync(result, left, right, result);
    }
    mma::store_matrix_sync(to + t * across + j, result, across, mma::mem_row_major);
  }
  __syncthreads();
}

// tile.gradient = value · meansᵀ, with the rests of the means or without them.
template <typename T, bool with_rests>
struct TensorMeans {
  __device__ void multiply(DeviceBlock& block, const HeadMap& map, const Tile& tile, const HeadSpace& space) {
    T* const value = reinterpret_cast<T*>(tile.x); // x is free
    const int columns = padded(map.width);
    to_half(block, tile.value, map.width, columns, value);
    times_means<mma::col_major, T>(
        value, columns, padded(map.features), reinterpret_cast<const T*>(space.half_means),
        with_rests ? reinterpret_cast<const T*>(space.half_rests) : nullptr, columns, tile.gradient);
  }
};

// tile.value = features · means: 2 × d/16 squares, at most two per warp.
template <typename T>
struct TensorOutput {
  __device__ void multiply(DeviceBlock& block, const HeadMap& map, const Tile& tile, const HeadSpace& space) {
    T* const features = reinterpret_cast<T*>(tile.y); // y is free
    to_half(block, tile.features, map.features, map.features, features);
    const int columns = padded(map.width);
    times_means<mma::row_major, T>(features, padded(map.features), columns,
                                   reinterpret_cast<const T*>(space.half_means), nullptr, columns,
                                   tile.value);
  }
};

inline __device__ Tile tile_of_block(const HeadMap& map) {
  HYDRASCOPE_SHARED_MEMORY(memory);
  return tile_in(memory, map);
}

// A block's head in the grid (…, H, B): its map, workspace and tile.
struct Place {
  std::int64_t b, h;
  HeadMap map;
  HeadSpace space;
  Tile tile;
  __device__ Place(const LinearArguments& a, const SideArguments& side)
      : b(blockIdx.z),
        h(blockIdx.y),
        map(head_map(a, side, b, h)),
        space(head_space(a, b * a.heads + h)),
        tile(tile_of_block(map)) {}

  // The head's rows of an input, and of an output (B,N,H,width).
  template <typename T>
  __device__ RowReader<T> rows_of(const HeadsOnDevice& x, const int width) const {
    const T* const data = static_cast<const T*>(x.data) + b * x.batch_stride + h * x.head_stride;
    return {data, x.token_stride, in_pieces(data, x.token_stride, width)};
  }
  template <typename T>
  __device__ RowWriter<T> rows_of_output(const LinearArguments& a, void* const to, const int width) const {
    T* const data = static_cast<T*>(to) + (b * a.tokens * a.heads + h) * width;
    return {data, a.heads * width, width, in_pieces(data, a.heads * width, width)};
  }
};

inline int tile_bytes(const HeadMap& map, const bool gradient, const bool causal) {
  return tile_floats(map, gradient, causal) * static_cast<int>(sizeof(float));
}

// The most shared memory of a block of the current device, in bytes; 0 if CUDA does not report it.
inline int max_tile_bytes() {
  int device = 0, bytes = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess;
  return known ? bytes : 0;
}

// Launches kernels over (x, H, B) one after another until one fails; a kernel with `tile` has a Tile in
// shared memory.
class Launches {
public:
  // `gradient`: of programs of gradients.
  Launches(const LinearArguments& a, const bool gradient, cudaStream_t stream)
      : a_(a), stream_(stream), tile_bytes_(tile_bytes(head_map(a, a.key, 0, 0), gradient, a.causal)) {}

  template <typename... More>
  void then(void (*kernel)(LinearArguments, More...), const std::int64_t x, const bool tile,
            const More... more) {
    const int bytes = tile ? tile_bytes_ : 0;
    // Always the device's maximum: the attribute belongs to the process, and another thread may need more.
    if (outcome == cudaSuccess && tile)
      outcome = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, max_tile_bytes());
    if (outcome != cudaSuccess) return;
    const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(a_.heads),
                    static_cast<unsigned>(a_.batch));
    outcome = launch(kernel, grid, static_cast<std::size_t>(bytes), stream_, a_, more...);
  }

  cudaError_t outcome = cudaSuccess;

private:
  const LinearArguments& a_;
  cudaStream_t stream_;
  int tile_bytes_;
};

// Calls run(product) with the type that computes Σ f vᵀ: chosen by the number of results that a thread or a
// warp keeps.
template <typename T, typename Run>
void with_sums_product(const LinearArguments& a, const Run& run) {
  const int rows = padded(a.features) / lanes, columns = padded(a.head_width) / lanes;
  if constexpr (sizeof(T) < sizeof(float)) {
    const int squares = rows * columns;
    if (squares <= 2 * warps) return run(Type<TensorKeys<T, 2>>());
    if (squares <= 4 * warps) return run(Type<TensorKeys<T, 4>>());
    if (squares <= 8 * warps) return run(Type<TensorKeys<T, 8>>());
    return run(Type<TensorKeys<T, 16>>());
  } else {
    if (columns <= 4) {
      if (rows <= 4) return run(Type<PlainKeys<DeviceBlock, 4, 4>>());
      if (rows <= 8) return run(Type<PlainKeys<DeviceBlock, 8, 4>>());
      return run(Type<PlainKeys<DeviceBlock, 16, 4>>());
    }
    if (rows <= 8) return run(Type<PlainKeys<DeviceBlock, 8, 8>>());
    return run(Type<PlainKeys<DeviceBlock, 16, 8>>());
  }
}

// Calls run(Type<Input>(), Type<T>()) with the types of q and k and of v.
template <typename Run>
cudaError_t with_types(const LinearArguments& a, const Run& run) {
  if (a.element == Element::bfloat16 && a.input_element == Element::float32)
    return run(Type<float>(), Type<__nv_bfloat16>());
  if (a.input_element != a.element) return cudaErrorInvalidValue;
  switch (a.element) {
    case Element::float32: return run(Type<float>(), Type<float>());
    case Element::float16: return run(Type<__half>(), Type<__half>());
    case Element::bfloat16: return run(Type<__nv_bfloat16>(), Type<__nv_bfloat16>());
  }
  return cudaErrorInvalidValue;
}

// Likewise; float16 is not trained through.
template <typename Run>
cudaError_t with_gradient_types(const LinearArguments& a, const Run& run) {
  if (a.element == Element::bfloat16)
    return a.input_element == Element::float32 ? run(Type<float>(), Type<__nv_bfloat16>())
                                               : run(Type<__nv_bfloat16>(), Type<__nv_bfloat16>());
  return a.element == Element::float32 ? run(Type<float>(), Type<float>()) : cudaErrorInvalidValue;
}

// The products of features and of values with the means.
template <typename T>
using OutputOf = std::conditional_t<sizeof(T) < sizeof(float), TensorOutput<T>, PlainOutput<DeviceBlock>>;
template <typename T, bool with_rests>
using MeansOf =
    std::conditional_t<sizeof(T) < sizeof(float), TensorMeans<T, with_rests>, PlainMeans<DeviceBlock>>;

} // namespace

// Whether a tile, of programs of gradients or of causal ones, fits the shared memory of a block on this
// device. Consumer cards have 100 KB; training with heads of 128 features needs more.
bool tile_fits(cpu::PointMap map, std::int64_t head_width, std::int64_t inputs, std::int64_t outputs,
               bool gradient, bool causal);

// 1. to 3. of linear_programs.h, in linear.cu.
cudaError_t sums_over_keys(const LinearArguments& a, cudaStream_t stream);

// linear_causal_programs.h: 1. and 2. over keys; 2. over queries, from the last part to the first; all of it.
// In linear_causal.cu.
cudaError_t causal_sums_over_keys(const LinearArguments& a, cudaStream_t stream);
cudaError_t sums_before_parts(const LinearArguments& a, bool of_queries, cudaStream_t stream);
cudaError_t causal_outputs(const LinearArguments& a, cudaStream_t stream);

// In linear_causal_gradient.cu.
cudaError_t causal_gradients_of(const LinearArguments& a, const LinearGradients& gradients,
                                cudaStream_t stream);

} // namespace hydrascope::cuda
