// hydra-cosine on the GPU: the programs of hydra_programs.h.
#include <cuda_runtime.h>

#include <type_traits>

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/hydra/cuda/hydra.h"
#include "engine/attention/hydra/cuda/hydra_programs.h"

namespace hydrascope::cuda {
namespace {

// Rows as float32.
template <typename T>
struct Rows {
  const T* data;
  std::int64_t batch_stride, token_stride;
  explicit Rows(const RowsOnDevice& rows)
      : data(static_cast<const T*>(rows.data)),
        batch_stride(rows.batch_stride),
        token_stride(rows.token_stride) {}
  __device__ float operator()(const std::int64_t b, const std::int64_t t, const std::int64_t f) const {
    return to_float(data[b * batch_stride + t * token_stride + f]);
  }
};
template <typename T>
struct DenseWriter {
  T* to;
  std::int64_t tokens, width;
  __device__ void operator()(const std::int64_t b, const std::int64_t t, const std::int64_t f,
                             const float value) const {
    to[(b * tokens + t) * width + f] = from_float<T>(value);
  }
};

template <typename T>
__global__ void inverse_norms_kernel(const HydraShape shape, const Rows<T> x, float* const inverse) {
  DeviceBlock block;
  inverse_norms(block, shape, blockIdx.x, x, inverse);
}
template <typename T>
__global__ void partial_sums_kernel(const HydraShape shape, const Rows<T> x, const Rows<T> y,
                                    const float* const inverse, float* const partial) {
  DeviceBlock block;
  partial_sums(block, shape, blockIdx.x, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y),
               blockIdx.z, x, y, inverse, partial);
}
__global__ void add_parts_kernel(const HydraShape shape, const int parts, const float* const partial,
                                 float* const sums) {
  DeviceBlock block;
  add_parts(block, shape, blockIdx.x, parts, blockIdx.z, partial, sums);
}
template <typename T>
__global__ void gate_kernel(const HydraShape shape, const Rows<T> x, const float* const inverse,
                            const float* const sums, const DenseWriter<T> write) {
  DeviceBlock block;
  gate(block, shape, blockIdx.x, x, inverse, sums, write);
}
template <typename T>
__global__ void through_norm_kernel(const HydraShape shape, const Rows<T> x, const Rows<T> y,
                                    const float* const inverse, const float* const sums,
                                    const DenseWriter<T> write) {
  DeviceBlock block;
  through_norm(block, shape, blockIdx.x, x, y, inverse, sums, write);
}

// The workspace, and each program over its grid, one after another until one fails.
template <typename T>
struct Launches {
  HydraShape shape;
  cudaStream_t stream;
  int parts;
  float *inverse_q, *inverse_k, *sums_of_keys, *sums_of_queries, *partial;
  cudaError_t outcome = cudaSuccess;

  Launches(const HydraArguments& a, cudaStream_t stream_)
      : shape{a.mask, a.batch, a.tokens, a.width},
        stream(stream_),
        parts(hydra_token_parts(a.tokens)),
        inverse_q(a.workspace),
        inverse_k(inverse_q + a.batch * a.tokens),
        sums_of_keys(inverse_k + a.batch * a.tokens),
        sums_of_queries(sums_of_keys + a.batch * a.width),
        partial(sums_of_queries + a.batch * a.width) {}

  dim3 row_blocks() const {
    return dim3(static_cast<unsigned>((shape.batch * shape.tokens + rows_of_block - 1) / rows_of_block));
  }
  dim3 feature_blocks(const int parts_of_tokens) const {
    return dim3(static_cast<unsigned>((shape.width + block_threads - 1) / block_threads),
                static_cast<unsigned>(parts_of_tokens), static_cast<unsigned>(shape.batch));
  }
  DenseWriter<T> writer(void* const to) const { return {static_cast<T*>(to), shape.tokens, shape.width}; }

  template <typename... Parameters>
  void then(void (*kernel)(HydraShape, Parameters...), const dim3 grid,
            const typename Type<Parameters>::type&... arguments) {
    if (outcome == cudaSuccess) outcome = launch(kernel, grid, 0, stream, shape, arguments...);
  }
  void norms(const RowsOnDevice& x, float* const inverse) {
    then(inverse_norms_kernel<T>, row_blocks(), Rows<T>(x), inverse);
  }
  void sums(const RowsOnDevice& x, const RowsOnDevice& y, const float* const inverse, float* const to) {
    then(partial_sums_kernel<T>, feature_blocks(parts), Rows<T>(x), Rows<T>(y), inverse, partial);
    then(add_parts_kernel, feature_blocks(1), parts, partial, to);
  }
  void gated(const RowsOnDevice& x, const float* const inverse, const float* const sums, void* const to) {
    then(gate_kernel<T>, row_blocks(), Rows<T>(x), inverse, sums, writer(to));
  }
  void by_rows(const RowsOnDevice& x, const RowsOnDevice& y, const float* const inverse,
               const float* const sums, void* const to) {
    then(through_norm_kernel<T>, row_blocks(), Rows<T>(x), Rows<T>(y), inverse, sums, writer(to));
  }
};

template <typename T>
cudaError_t output(const HydraArguments& a, cudaStream_t stream) {
  Launches<T> launches(a, stream);
  launches.norms(a.q, launches.inverse_q);
  launches.norms(a.k, launches.inverse_k);
  launches.sums(a.k, a.v, launches.inverse_k, launches.sums_of_keys);
  launches.gated(a.q, launches.inverse_q, launches.sums_of_keys, a.out);
  return launches.outcome;
}

template <typename T>
cudaError_t gradients_of(const HydraArguments& a, const HydraGradients& gradients, cudaStream_t stream) {
  Launches<T> launches(a, stream);
  launches.norms(a.q, launches.inverse_q);
  launches.norms(a.k, launches.inverse_k);
  launches.sums(a.k, a.v, launches.inverse_k, launches.sums_of_keys);
  launches.sums(a.q, gradients.g, launches.inverse_q, launches.sums_of_queries);
  launches.by_rows(a.q, gradients.g, launches.inverse_q, launches.sums_of_keys, gradients.q);
  launches.by_rows(a.k, a.v, launches.inverse_k, launches.sums_of_queries, gradients.k);
  launches.gated(a.k, launches.inverse_k, launches.sums_of_queries, gradients.v);
  return launches.outcome;
}

// Calls run(T()) for the element type. Returns null, or CUDA's error message of the launches.
template <typename Run>
const char* with_element(const Element element, const Run& run) {
  switch (element) {
    case Element::float32: return message_of(run(float()));
    case Element::float16: return message_of(run(__half()));
    case Element::bfloat16: return message_of(run(__nv_bfloat16()));
  }
  return message_of(cudaErrorInvalidValue);
}

} // namespace

int hydra_token_parts(std::int64_t tokens) {
  const std::int64_t parts = (tokens + 31) / 32;
  return static_cast<int>(parts < 64 ? parts : 64);
}

std::int64_t hydra_workspace_floats(std::int64_t batch, std::int64_t tokens, std::int64_t width) {
  return batch * (2 * tokens + (hydra_token_parts(tokens) + 2) * width);
}

const char* hydra_cosine(const HydraArguments& arguments, void* stream) {
  return with_element(arguments.element, [&](const auto element) {
    return output<std::decay_t<decltype(element)>>(arguments, static_cast<cudaStream_t>(stream));
  });
}

const char* hydra_cosine_gradients(const HydraArguments& arguments, const HydraGradients& gradients,
                                   void* stream) {
  return with_element(arguments.element, [&](const auto element) {
    return gradients_of<std::decay_t<decltype(element)>>(arguments, gradients,
                                                         static_cast<cudaStream_t>(stream));
  });
}

} // namespace hydrascope::cuda
