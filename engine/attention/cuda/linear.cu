// Linear attention on the GPU with its features never stored: the programs of linear_programs.h, a block each
// for a part of a head's keys and for 32 of its queries. Half types multiply on the tensor cores and add in
// float32; float32 multiplies as such. Masked tokens are skipped before they are read: they may hold NaN.
#include <cuda_runtime.h>
#include <mma.h>

#include "engine/attention/cuda/elements.cuh"
#include "engine/attention/cuda/linear_programs.h"

namespace hydrascope::cuda {
namespace {

constexpr int warp = 32;
constexpr int warps = block_threads / warp;

struct DeviceBlock {
  template <typename T>
  struct Local {
    T value;
    __device__ explicit Local(const T& initial) : value(initial) {}
    __device__ T& operator[](int) { return value; }
  };
  template <typename Phase>
  __device__ void each(const Phase& phase) {
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
};

// A head of one sequence as float32.
template <typename T>
struct Rows {
  const T* data;
  std::int64_t stride;
  __device__ float operator()(const std::int64_t token, const int c) const {
    return to_float(data[token * stride + c]);
  }
};
template <typename T>
__device__ Rows<T> rows_of(const HeadsOnDevice& x, const std::int64_t b, const std::int64_t h) {
  return {static_cast<const T*>(x.data) + b * x.batch_stride + h * x.head_stride, x.token_stride};
}

// (32, width) floats as (32, padded) of T, filled up with 0.
template <typename T>
__device__ void to_half(DeviceBlock& block, const float* const from, const int width, T* const to) {
  block.each([&](const int thread) {
    for (int i = thread; i < tile_tokens * padded(width); i += block_threads) {
      const int c = i % padded(width);
      to[i] = from_float<T>(c < width ? from[i / padded(width) * width + c] : 0.0f);
    }
  });
}

namespace mma = nvcuda::wmma;
template <typename T, typename Layout>
using Left = mma::fragment<mma::matrix_a, lanes, lanes, lanes, T, Layout>;
template <typename T>
using Right = mma::fragment<mma::matrix_b, lanes, lanes, lanes, T, mma::row_major>;
using Squares = mma::fragment<mma::accumulator, lanes, lanes, lanes, float>;

// Where the i-th square of results of this thread's warp begins; f beyond the features: there is none.
struct Square {
  int f, c;
};
__device__ Square square_of(const HeadMap& map, const int i) {
  const int square = static_cast<int>(threadIdx.x) / warp + warps * i, across = padded(map.width) / lanes;
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
    // x and y have served. A row of y, 4m bytes, holds 2m halves; one of x as many as value has.
    T* const features = reinterpret_cast<T*>(tile.y);
    T* const value = reinterpret_cast<T*>(tile.x);
    to_half(block, tile.features, map.features, features);
    to_half(block, tile.value, map.width, value);
    const int rows = padded(map.features), columns = padded(map.width);
#pragma unroll
    for (int i = 0; i < squares; ++i) {
      const Square at = square_of(map, i);
      if (at.f >= rows) continue;
      for (int t = 0; t < tile_tokens; t += lanes) {
        Left<T, mma::col_major> left;
        Right<T> right;
        mma::load_matrix_sync(left, features + t * rows + at.f, rows);
        mma::load_matrix_sync(right, value + t * columns + at.c, columns);
        mma::mma_sync(results[i], left, right, results[i]);
      }
    }
    __syncthreads(); // before the next tokens are laid over them
  }

  __device__ void write(DeviceBlock&, const HeadMap& map, float* const to) {
    const int columns = padded(map.width);
#pragma unroll
    for (int i = 0; i < squares; ++i) {
      const Square at = square_of(map, i);
      if (at.f < padded(map.features))
        mma::store_matrix_sync(to + at.f * columns + at.c, results[i], columns, mma::mem_row_major);
    }
  }
};

// features · means on the tensor cores: 2 × d/16 squares, no more than two a warp.
template <typename T>
struct TensorAnswer {
  __device__ void multiply(DeviceBlock& block, const HeadMap& map, const Tile& tile, const HeadSpace& space) {
    T* const features = reinterpret_cast<T*>(tile.y);
    to_half(block, tile.features, map.features, features);
    const T* const means = reinterpret_cast<const T*>(space.half_means);
    const int rows = padded(map.features), columns = padded(map.width);
    for (int square = static_cast<int>(threadIdx.x) / warp; square < tile_tokens / lanes * (columns / lanes);
         square += warps) {
      const int t = square / (columns / lanes) * lanes, c = square % (columns / lanes) * lanes;
      Squares result;
      mma::fill_fragment(result, 0.0f);
      for (int f = 0; f < rows; f += lanes) {
        Left<T, mma::row_major> left;
        Right<T> right;
        mma::load_matrix_sync(left, features + t * rows + f, rows);
        mma::load_matrix_sync(right, means + f * columns + c, columns);
        mma::mma_sync(result, left, right, result);
      }
      mma::store_matrix_sync(tile.value + t * columns + c, result, columns, mma::mem_row_major);
    }
    __syncthreads();
  }
};

// What a block finds of its head: grid (…, H, B).
struct Place {
  std::int64_t b, h;
  HeadMap map;
  HeadSpace space;
  Tile tile;
  __device__ Place(const LinearArguments& a, const SideArguments& side, float* const memory)
      : b(blockIdx.z),
        h(blockIdx.y),
        map(head_map(a, side, b, h)),
        space(head_space(a, b * a.heads + h)),
        tile(tile_in(memory, map)) {}
};

extern __shared__ __align__(128) float shared_memory[];

template <typename T>
__global__ void largest_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key, shared_memory);
  const int part = static_cast<int>(blockIdx.x);
  largest_of_keys(block, place.map, rows_of<T>(a.k, place.b, place.h), part_of(a, place.b, part), place.tile,
                  place.space.part_largest + part * padded(place.map.features));
}

template <typename T, typename Product>
__global__ void sums_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key, shared_memory);
  const int part = static_cast<int>(blockIdx.x), features = padded(place.map.features);
  Product product;
  sums_of_keys(block, place.map, rows_of<T>(a.k, place.b, place.h), rows_of<T>(a.v, place.b, place.h),
               part_of(a, place.b, part), place.tile, place.space.largest, product,
               place.space.part_values + static_cast<std::int64_t>(part) * features * padded(place.map.width),
               place.space.part_ones + part * features);
}

__global__ void merge_largest_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key, shared_memory);
  merge_largest(block, place.map, place.space, linear_parts(a.tokens));
}

template <typename T>
__global__ void merge_sums_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key, shared_memory);
  T* const copy = reinterpret_cast<T*>(place.space.half_means);
  merge_sums(block, place.map, place.space, linear_parts(a.tokens), a.normalised,
             [&](const int i, const float mean) {
               if (sizeof(T) < sizeof(float)) copy[i] = from_float<T>(mean);
             });
}

template <typename T, typename Product>
__global__ void answer_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.query, shared_memory);
  Product product;
  T* const out = static_cast<T*>(a.out);
  const Tokens tokens{a.mask == nullptr ? nullptr : a.mask + place.b * a.tokens, 0, a.tokens};
  answer(
      block, place.map, rows_of<T>(a.q, place.b, place.h), tokens,
      static_cast<std::int64_t>(blockIdx.x) * tile_tokens, place.tile, place.space, a.normalised, product,
      [&](const std::int64_t token, const int c, const float value) {
        out[((place.b * a.tokens + token) * a.heads + place.h) * a.head_width + c] = from_float<T>(value);
      },
      [&] { atomicAdd(reinterpret_cast<int*>(a.workspace), 1); });
}

// Launches a kernel over (x, H, B) with the shared memory that a block needs.
template <typename Kernel>
cudaError_t launch(Kernel kernel, const LinearArguments& a, const std::int64_t x, const int floats,
                   const cudaStream_t stream) {
  const int bytes = floats * static_cast<int>(sizeof(float));
  if (const cudaError_t failure =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      failure != cudaSuccess)
    return failure;
  const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(a.heads), static_cast<unsigned>(a.batch));
  kernel<<<grid, block_threads, static_cast<std::size_t>(bytes), stream>>>(a);
  return cudaGetLastError();
}

template <typename T, typename Keys, typename Answer>
cudaError_t run(const LinearArguments& a, const cudaStream_t stream) {
  const HeadMap map = head_map(a, a.key, 0, 0);
  const int floats = tile_floats(map), parts = linear_parts(a.tokens);
  cudaError_t outcome = cudaMemsetAsync(a.workspace, 0, sizeof(int), stream);
  const auto then = [&](auto kernel, const std::int64_t x, const int shared) {
    if (outcome == cudaSuccess) outcome = launch(kernel, a, x, shared, stream);
  };
  if (map.logarithmic()) {
    then(largest_kernel<T>, parts, floats);
    then(merge_largest_kernel, 1, 0);
  }
  then(sums_kernel<T, Keys>, parts, floats);
  then(merge_sums_kernel<T>, 1, 0);
  then(answer_kernel<T, Answer>, (a.tokens + tile_tokens - 1) / tile_tokens, floats);
  return outcome;
}

cudaError_t run_float(const LinearArguments& a, const cudaStream_t stream) {
  const int rows = padded(a.features) / lanes, columns = padded(a.head_width) / lanes;
  using Answer = PlainAnswer<DeviceBlock>;
  if (columns <= 4) {
    if (rows <= 4) return run<float, PlainKeys<DeviceBlock, 4, 4>, Answer>(a, stream);
    if (rows <= 8) return run<float, PlainKeys<DeviceBlock, 8, 4>, Answer>(a, stream);
    return run<float, PlainKeys<DeviceBlock, 16, 4>, Answer>(a, stream);
  }
  if (rows <= 8) return run<float, PlainKeys<DeviceBlock, 8, 8>, Answer>(a, stream);
  return run<float, PlainKeys<DeviceBlock, 16, 8>, Answer>(a, stream);
}

template <typename T>
cudaError_t run_half(const LinearArguments& a, const cudaStream_t stream) {
  const int squares = padded(a.features) / lanes * (padded(a.head_width) / lanes);
  using Answer = TensorAnswer<T>;
  if (squares <= 2 * warps) return run<T, TensorKeys<T, 2>, Answer>(a, stream);
  if (squares <= 4 * warps) return run<T, TensorKeys<T, 4>, Answer>(a, stream);
  if (squares <= 8 * warps) return run<T, TensorKeys<T, 8>, Answer>(a, stream);
  return run<T, TensorKeys<T, 16>, Answer>(a, stream);
}

} // namespace

bool linear_takes(const cpu::PointMap map, const bool normalised, const Element element,
                  const std::int64_t head_width, const std::int64_t outputs) {
  if (map == cpu::PointMap::taylor || head_width > most_width || outputs > most_features) return false;
  if (!normalised && element != Element::float32) return false; // its sums may leave a half type's range
  return features_of(map, static_cast<int>(outputs)) <= most_features;
}

std::int64_t linear_workspace_floats(const LinearArguments& arguments) {
  return counter_floats + arguments.batch * arguments.heads * head_space_floats(arguments);
}

const char* linear_attention(const LinearArguments& arguments, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  cudaError_t outcome = cudaErrorInvalidValue;
  switch (arguments.element) {
    case Element::float32: outcome = run_float(arguments, cuda_stream); break;
    case Element::float16: outcome = run_half<__half>(arguments, cuda_stream); break;
    case Element::bfloat16: outcome = run_half<__nv_bfloat16>(arguments, cuda_stream); break;
  }
  return outcome == cudaSuccess ? nullptr : cudaGetErrorString(outcome);
}

} // namespace hydrascope::cuda
