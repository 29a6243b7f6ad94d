// The gradients of causal linear attention on the GPU: the programs of linear_causal_gradient_programs.h, one
// block for each part of a head's tokens.
#include "engine/attention/linear/cuda/linear_causal_gradient_programs.h"
#include "engine/attention/linear/cuda/linear_device.cuh"

namespace hydrascope::cuda {
namespace {

// A part of a head's tokens, with the maps of both sides.
struct PlaceOfPart : Place {
  HeadMap key_map;
  RunningSums of_keys;
  CausalSpace causal;
  int part;
  Tokens tokens;
  __device__ explicit PlaceOfPart(const LinearArguments& a)
      : Place(a, a.query),
        key_map(head_map(a, a.key, b, h)),
        of_keys(sums_of_keys(space)),
        causal(causal_space(a, b * a.heads + h)),
        part(static_cast<int>(blockIdx.x)),
        tokens(part_of(a, b, part)) {}
};

template <typename Input, typename T>
__global__ void denominators_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const PlaceOfPart at(a);
  denominators_and_dots(block, at.map, at.key_map, at.rows_of<Input>(a.q, a.inputs),
                        at.rows_of<Input>(a.k, a.inputs), at.rows_of<T>(a.v, a.head_width),
                        at.rows_of<T>(gradients.g, a.head_width), at.tokens, at.tile, at.of_keys, at.causal,
                        at.part, a.normalised);
}

template <typename Input, typename T>
__global__ void query_sums_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const PlaceOfPart at(a);
  sums_over_part(block, at.map, at.rows_of<Input>(a.q, a.inputs), at.rows_of<T>(gradients.g, a.head_width),
                 at.tokens, at.tile, at.causal.queries.of_part(at.map, at.part),
                 ShareOfQuery{at.map, at.causal},
                 [&](const std::int64_t token) { return at.causal.dots[token]; });
}

template <typename Input, typename T>
__global__ void causal_queries_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const PlaceOfPart at(a);
  causal_gradient_of_queries(block, at.map, at.key_map, at.rows_of<Input>(a.q, a.inputs),
                             at.rows_of<Input>(a.k, a.inputs), at.rows_of<T>(a.v, a.head_width),
                             at.rows_of<T>(gradients.g, a.head_width), at.tokens, at.tile, at.of_keys,
                             at.causal, at.part, at.rows_of_output<Input>(a, gradients.q, a.outputs));
}

template <typename Input, typename T>
__global__ void causal_keys_kernel(const LinearArguments a, const LinearGradients gradients) {
  DeviceBlock block;
  const PlaceOfPart at(a);
  causal_gradient_of_keys(block, at.map, at.key_map, at.rows_of<Input>(a.q, a.inputs),
                          at.rows_of<Input>(a.k, a.inputs), at.rows_of<T>(a.v, a.head_width),
                          at.rows_of<T>(gradients.g, a.head_width), at.tokens, at.tile, at.causal, at.part,
                          at.rows_of_output<Input>(a, gradients.k, a.outputs),
                          at.rows_of_output<T>(a, gradients.v, a.head_width));
}

} // namespace

cudaError_t causal_gradients_of(const LinearArguments& a, const LinearGradients& gradients,
                                cudaStream_t stream) {
  Launches launches(a, true, stream);
  const int parts = linear_parts(a.tokens);
  launches.outcome = causal_sums_over_keys(a, stream);
  return with_gradient_types(a, [&](const auto input, const auto value) {
    using Input = typename decltype(input)::type;
    using T = typename decltype(value)::type;
    launches.then(denominators_kernel<Input, T>, parts, true, gradients);
    launches.then(query_sums_kernel<Input, T>, parts, true, gradients);
    if (launches.outcome == cudaSuccess) launches.outcome = sums_before_parts(a, true, stream);
    launches.then(causal_queries_kernel<Input, T>, parts, true, gradients);
    launches.then(causal_keys_kernel<Input, T>, parts, true, gradients);
    return launches.outcome;
  });
}

} // namespace hydrascope::cuda
