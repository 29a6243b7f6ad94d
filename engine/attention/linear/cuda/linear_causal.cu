// Causal linear attention on the GPU: the programs of linear_causal_programs.h, one block for each part of a
// head's tokens.
#include "engine/attention/linear/cuda/linear_causal_programs.h"
#include "engine/attention/linear/cuda/linear_device.cuh"

namespace hydrascope::cuda {
namespace {

__global__ void values_before_kernel(const LinearArguments a) {
  DeviceBlock block;
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  values_before_parts(block, head_map(a, a.key, b, h), head_space(a, b * a.heads + h), linear_parts(a.tokens),
                      static_cast<int>(blockIdx.x));
}

__global__ void totals_before_kernel(const LinearArguments a) {
  DeviceBlock block;
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  totals_before_parts(block, head_map(a, a.key, b, h), head_space(a, b * a.heads + h),
                      linear_parts(a.tokens));
}

template <typename Input, typename T>
__global__ void causal_output_kernel(const LinearArguments a) {
  DeviceBlock block;
  const Place place(a, a.query);
  const int part = static_cast<int>(blockIdx.x);
  T* const out = static_cast<T*>(a.out);
  causal_output(
      block, place.map, head_map(a, a.key, place.b, place.h), rows_of<Input>(a.q, place.b, place.h),
      rows_of<Input>(a.k, place.b, place.h), rows_of<T>(a.v, place.b, place.h), part_of(a, place.b, part),
      place.tile, sums_of_part(place.map, place.space, part), a.normalised,
      [&](const std::int64_t token, const int c, const float value) {
        out[((place.b * a.tokens + token) * a.heads + place.h) * a.head_width + c] = from_float<T>(value);
      },
      [&] { atomicAdd(reinterpret_cast<int*>(a.workspace), 1); });
}

} // namespace

cudaError_t causal_outputs(const LinearArguments& a, cudaStream_t stream) {
  Launches launches(a, true, stream);
  const int entries = padded(a.features) * padded(a.head_width);
  launches.then(values_before_kernel, (entries + block_threads - 1) / block_threads, false);
  launches.then(totals_before_kernel, 1, false);
  launches.outcome = with_types(a, [&](const auto input, const auto value) {
    launches.then(causal_output_kernel<typename decltype(input)::type, typename decltype(value)::type>,
                  linear_parts(a.tokens), true);
    return launches.outcome;
  });
  return launches.outcome;
}

} // namespace hydrascope::cuda
