// Causal linear attention on the GPU: the programs of linear_causal_programs.h, one block for each part of a
// head's tokens.
#include "engine/attention/linear/cuda/linear_causal_gradient_programs.h"
#include "engine/attention/linear/cuda/linear_causal_programs.h"
#include "engine/attention/linear/cuda/linear_device.cuh"

namespace hydrascope::cuda {
namespace {

__device__ RunningSums sums_of_side(const LinearArguments& a, const bool of_queries) {
  const std::int64_t head = blockIdx.z * a.heads + blockIdx.y;
  return of_queries ? causal_space(a, head).queries : sums_of_keys(head_space(a, head));
}

__global__ void values_before_kernel(const LinearArguments a, const bool of_queries) {
  DeviceBlock block;
  values_before_parts(block, head_map(a, a.key, blockIdx.z, blockIdx.y), sums_of_side(a, of_queries),
                      linear_parts(a.tokens), of_queries, static_cast<int>(blockIdx.x));
}

__global__ void totals_before_kernel(const LinearArguments a, const bool of_queries) {
  DeviceBlock block;
  totals_before_parts(block, head_map(a, a.key, blockIdx.z, blockIdx.y), sums_of_side(a, of_queries),
                      linear_parts(a.tokens), of_queries);
}

// With `keys` in the place of `gradient`, which a program without gradients does not have.
__device__ Tile forward_tile(Tile tile) {
  tile.keys = tile.gradient;
  return tile;
}

template <typename Input, typename T>
__global__ void key_sums_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key);
  const int part = static_cast<int>(blockIdx.x);
  sums_over_part(block, place.map, place.rows_of<Input>(a.k, a.inputs), place.rows_of<T>(a.v, a.head_width),
                 part_of(a, place.b, part), forward_tile(place.tile),
                 sums_of_keys(place.space).of_part(place.map, part), OwnFeature(), EqualWeights());
}

template <typename Input, typename T>
__global__ void causal_output_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.query);
  const int part = static_cast<int>(blockIdx.x);
  const Tokens tokens = part_of(a, place.b, part);
  const Tile tile = forward_tile(place.tile);
  causal_output(
      block, place.map, head_map(a, a.key, place.b, place.h), place.rows_of<Input>(a.q, a.inputs),
      place.rows_of<Input>(a.k, a.inputs), place.rows_of<T>(a.v, a.head_width), tokens, tile,
      sums_of_keys(place.space).of_part(place.map, part), a.normalised,
      [&](const std::int64_t first) {
        const int t = static_cast<int>(threadIdx.x);
        if (a.normalised && t < tile_tokens && tokens.real(first + t) && denominator_of(tile, t) == 0)
          atomicAdd(reinterpret_cast<int*>(a.workspace), 1);
      },
      place.rows_of_output<T>(a, a.out, a.head_width), [](std::int64_t) {});
}

} // namespace

cudaError_t sums_before_parts(const LinearArguments& a, const bool of_queries, cudaStream_t stream) {
  Launches launches(a, false, stream);
  const int entries = padded(a.features) * padded(a.head_width);
  launches.then(values_before_kernel, (entries + block_threads - 1) / block_threads, false, of_queries);
  launches.then(totals_before_kernel, 1, false, of_queries);
  return launches.outcome;
}

cudaError_t causal_sums_over_keys(const LinearArguments& a, cudaStream_t stream) {
  Launches launches(a, false, stream);
  launches.outcome = with_types(a, [&](const auto input, const auto value) {
    launches.then(key_sums_kernel<typename decltype(input)::type, typename decltype(value)::type>,
                  linear_parts(a.tokens), true);
    return launches.outcome;
  });
  return launches.outcome == cudaSuccess ? sums_before_parts(a, false, stream) : launches.outcome;
}

cudaError_t causal_outputs(const LinearArguments& a, cudaStream_t stream) {
  Launches launches(a, false, stream);
  launches.outcome = cudaMemsetAsync(a.workspace, 0, sizeof(int), stream);
  if (launches.outcome == cudaSuccess) launches.outcome = causal_sums_over_keys(a, stream);
  return with_types(a, [&](const auto input, const auto value) {
    launches.then(causal_output_kernel<typename decltype(input)::type, typename decltype(value)::type>,
                  linear_parts(a.tokens), true);
    return launches.outcome;
  });
}

} // namespace hydrascope::cuda
