// The gradients of linear attention on the GPU: the programs of linear_gradient_programs.h, one block for
// each part of a head's queries and for each 32 of its keys.
#include "engine/attention/linear/cuda/linear_device.cuh"
#include "engine/attention/linear/cuda/linear_gradient_programs.h"

namespace hydrascope::cuda {
namespace {

template <typename Input, typename T, typename Product>
__global__ void queries_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const Place place(a, a.query);
  const int part = static_cast<int>(blockIdx.x), features = padded(place.map.features);
  Product product;
  MeansOf<T, true> by_means; // the means of the features cancel with their mean
  gradient_of_queries(
      block, place.map, place.rows_of<Input>(a.q, a.inputs), place.rows_of<T>(gradients.g, a.head_width),
      part_of(a, place.b, part), place.tile, place.space, a.normalised, product, by_means,
      place.rows_of_output<Input>(a, gradients.q, a.outputs),
      place.space.part_values + static_cast<std::int64_t>(part) * features * padded(place.map.width),
      place.space.part_totals + part * features);
}

template <typename T>
__global__ void merge_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.query);
  T* const copy = reinterpret_cast<T*>(place.space.half_means);
  merge_gradients(block, place.map, place.space, linear_parts(a.tokens), [&](const int i, const float sum) {
    if (sizeof(T) == sizeof(float)) return sum;
    copy[i] = from_float<T>(sum);
    return to_float(copy[i]);
  });
}

template <typename Input, typename T>
__global__ void keys_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const Place place(a, a.key);
  OutputOf<T> product;
  MeansOf<T, false> by_means;
  const Tokens tokens{a.mask == nullptr ? nullptr : a.mask + place.b * a.tokens, 0, a.tokens};
  gradient_of_keys(block, place.map, place.rows_of<Input>(a.k, a.inputs), place.rows_of<T>(a.v, a.head_width),
                   tokens, static_cast<std::int64_t>(blockIdx.x) * tile_tokens, place.tile, place.space,
                   a.normalised, product, by_means, place.rows_of_output<Input>(a, gradients.k, a.outputs),
                   place.rows_of_output<T>(a, gradients.v, a.head_width));
}

template <typename Input, typename T>
cudaError_t run(const LinearArguments& a, const LinearGradients& gradients, cudaStream_t stream) {
  Launches launches(a, true, stream);
  launches.outcome = sums_over_keys(a, stream);
  with_sums_product<T>(a, [&](const auto product) {
    launches.then(queries_kernel<Input, T, typename decltype(product)::type>, linear_parts(a.tokens), true,
                  gradients);
  });
  launches.then(merge_kernel<T>, 1, false);
  launches.then(keys_kernel<Input, T>, (a.tokens + tile_tokens - 1) / tile_tokens, true, gradients);
  return launches.outcome;
}

} // namespace

bool linear_gradients_take(const cpu::PointMap map, const bool normalised, const Element element,
                           const std::int64_t head_width, const std::int64_t outputs, const bool causal) {
  return element != Element::float16 && linear_takes(map, normalised, element, head_width, outputs, causal) &&
         tile_fits(map, head_width, outputs, outputs, true, causal);
}

const char* linear_gradients(const LinearArguments& arguments, const LinearGradients& gradients,
                             void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  if (arguments.causal) return message_of(causal_gradients_of(arguments, gradients, cuda_stream));
  return message_of(with_gradient_types(arguments, [&](const auto input, const auto value) {
    return run<typename decltype(input)::type, typename decltype(value)::type>(arguments, gradients,
                                                                               cuda_stream);
  }));
}

} // namespace hydrascope::cuda
