// Linear attention on the GPU without storing the features: the programs of linear_programs.h, one block for
// each part of a head's keys and for each 32 of its queries.
#include "engine/attention/linear/cuda/fixed_width.h"
#include "engine/attention/linear/cuda/linear_causal_gradient_programs.h"
#include "engine/attention/linear/cuda/linear_device.cuh"
#include "engine/attention/linear/cuda/linear_programs.h"

namespace hydrascope::cuda {
namespace {

template <typename Input>
__global__ void largest_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key);
  const int part = static_cast<int>(blockIdx.x);
  largest_of_keys(block, place.map, place.rows_of<Input>(a.k, a.inputs), part_of(a, place.b, part),
                  place.tile, place.space.part_largest + part * padded(place.map.features));
}

template <typename Input, typename T, typename Product>
__global__ void sums_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key);
  const int part = static_cast<int>(blockIdx.x), features = padded(place.map.features);
  Product product;
  sums_of_keys(block, place.map, place.rows_of<Input>(a.k, a.inputs), place.rows_of<T>(a.v, a.head_width),
               part_of(a, place.b, part), place.tile, place.space.largest, product,
               place.space.part_values + static_cast<std::int64_t>(part) * features * padded(place.map.width),
               place.space.part_totals + part * features);
}

__global__ void merge_largest_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key);
  merge_largest(block, place.map, place.space, linear_parts(a.tokens));
}

template <typename T>
__global__ void merge_sums_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.key);
  T* const copy = reinterpret_cast<T*>(place.space.half_means);
  T* const rests = reinterpret_cast<T*>(place.space.half_rests);
  merge_sums(block, place.map, place.space, linear_parts(a.tokens), a.normalised,
             [&](const int i, const float mean) {
               if (sizeof(T) == sizeof(float)) return;
               copy[i] = from_float<T>(mean);
               rests[i] = from_float<T>(mean - to_float(copy[i]));
             });
}

template <typename Input, typename T, typename Product>
__global__ void output_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.query);
  Product product;
  const Tokens tokens{a.mask == nullptr ? nullptr : a.mask + place.b * a.tokens, 0, a.tokens};
  output_of_queries(block, place.map, place.rows_of<Input>(a.q, a.inputs), tokens,
                    static_cast<std::int64_t>(blockIdx.x) * tile_tokens, place.tile, place.space,
                    a.normalised, product, place.rows_of_output<T>(a, a.out, a.head_width),
                    [&] { atomicAdd(reinterpret_cast<int*>(a.workspace), 1); });
}

template <typename Input, typename T>
cudaError_t sums_over_keys_of(const LinearArguments& a, cudaStream_t stream) {
  const int parts = linear_parts(a.tokens);
  Launches launches(a, false, stream);
  if (head_map(a, a.key, 0, 0).logarithmic()) {
    launches.then(largest_kernel<Input>, parts, true);
    launches.then(merge_largest_kernel, 1, false);
  }
  with_sums_product<T>(a, [&](const auto product) {
    launches.then(sums_kernel<Input, T, typename decltype(product)::type>, parts, true);
  });
  launches.then(merge_sums_kernel<T>, 1, false);
  return launches.outcome;
}

template <typename Input, typename T>
cudaError_t outputs_of(const LinearArguments& a, cudaStream_t stream) {
  Launches launches(a, false, stream);
  launches.then(output_kernel<Input, T, OutputOf<T>>, (a.tokens + tile_tokens - 1) / tile_tokens, true);
  return launches.outcome;
}

cudaError_t outputs(const LinearArguments& a, cudaStream_t stream) {
  if (fixed_width_takes_queries(a)) return fixed_width_queries(a, stream);
  return with_types(a, [&](const auto input, const auto value) {
    return outputs_of<typename decltype(input)::type, typename decltype(value)::type>(a, stream);
  });
}

} // namespace

bool tile_fits(const cpu::PointMap map, const std::int64_t head_width, const std::int64_t inputs,
               const std::int64_t outputs, const bool gradient, const bool causal) {
  HeadMap one{};
  one.width = static_cast<int>(head_width);
  one.inputs = static_cast<int>(inputs);
  one.outputs = static_cast<int>(outputs);
  one.features = features_of(map, one.outputs);
  return tile_bytes(one, gradient, causal) <= max_tile_bytes();
}

cudaError_t sums_over_keys(const LinearArguments& a, cudaStream_t stream) {
  const cudaError_t outcome = cudaMemsetAsync(a.workspace, 0, sizeof(int), stream);
  if (outcome != cudaSuccess) return outcome;
  if (fixed_width_takes_keys(a)) return fixed_width_keys(a, stream);
  return with_types(a, [&](const auto input, const auto value) {
    return sums_over_keys_of<typename decltype(input)::type, typename decltype(value)::type>(a, stream);
  });
}

bool linear_takes(const cpu::PointMap map, const bool normalised, const Element element,
                  const std::int64_t head_width, const std::int64_t outputs, const bool causal) {
  if (map == cpu::PointMap::taylor || head_width > max_width || outputs > max_features) return false;
  if (!normalised && element != Element::float32) return false; // sums may exceed a half type's range
  return features_of(map, static_cast<int>(outputs)) <= max_features &&
         tile_fits(map, head_width, head_width, outputs, false, causal);
}

std::int64_t linear_workspace_floats(const LinearArguments& arguments) {
  const bool causal_gradients = arguments.causal && arguments.out == nullptr;
  const std::int64_t of_head =
      head_space_floats(arguments) + (causal_gradients ? causal_space_floats(arguments) : 0);
  return counter_floats + arguments.batch * arguments.heads * of_head;
}

const char* linear_attention(const LinearArguments& arguments, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  if (arguments.causal) return message_of(causal_outputs(arguments, cuda_stream));
  cudaError_t outcome = sums_over_keys(arguments, cuda_stream);
  if (outcome == cudaSuccess) outcome = outputs(arguments, cuda_stream);
  return message_of(outcome);
}

} // namespace hydrascope::cuda
