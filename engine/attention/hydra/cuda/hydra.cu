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

// The workspace, and each program over its grid.
template <typename T>
struct Launches {
  HydraShape shape;
  cudaStream_t stream;
  int parts;
  float *inverse_q, *inverse_k, *sums_of_keys, *sums_of_queries, *partial;

  Launches(const HydraArguments& a, const cudaStream_t stream_)
      : shape{a.mask, a.batch, a.tokens, a.width},
        stream(stream_),
        parts(hydra_token_parts(a.tokens)),
        inverse_q(a.workspace),
        inverse_k(inverse_q + a.batch * a.tokens),
        sums_of_keys(inverse_k + a.batch * a.tokens),
        sums_of_queries(sums_of_keys + a.batch * a.width),
        partial(sums_of_queries + a.batch * a.width) {}

  unsigned row_blocks() const {
    return static_cast<unsigned>((shape.batch * shape.tokens + rows_of_block - 1) / rows_of_block);
  }
  DenseWriter<T> writer(void* const to) const { return {static_cast<T*>(to), shape.tokens, shape.width}; }

  void norms(const RowsOnDevice& x, float* const inverse) const {
    inverse_norms_kernel<T><<<row_blocks(), block_threads, 0, stream>>>(shape, Rows<T>(x), inverse);
  }
  void sums(const RowsOnDevice& x, const RowsOnDevice& y, const float* const inverse, float* const to) const {
    const auto features = static_cast<unsigned>((shape.width + block_threads - 1) / block_threads);
    const auto batch = static_cast<unsigned>(shape.batch);
    partial_sums_kernel<T><<<dim3(features, static_cast<unsigned>(parts), batch), block_threads, 0, stream>>>(
        shape, Rows<T>(x), Rows<T>(y), inverse, partial);
    add_parts_kernel<<<dim3(features, 1, batch), block_threads, 0, stream>>>(shape, parts, partial, to);
  }
  void gated(const RowsOnDevice& x, const float* const inverse, const float* const sums,
             void* const to) const {
    gate_kernel<T><<<row_blocks(), block_threads, 0, stream>>>(shape, Rows<T>(x), inverse, sums, writer(to));
  }
  void by_rows(const RowsOnDevice& x, const RowsOnDevice& y, const float* const inverse,
               const float* const sums, void* const to) const {
    through_norm_kernel<T><<<row_blocks(), block_threads, 0, stream>>>(shape, Rows<T>(x), Rows<T>(y), inverse,
                                                                       sums, writer(to));
  }
};

template <typename T>
void output(const HydraArguments& a, const cudaStream_t stream) {
  const Launches<T> launch(a, stream);
  launch.norms(a.q, launch.inverse_q);
  launch.norms(a.k, launch.inverse_k);
  launch.sums(a.k, a.v, launch.inverse_k, launch.sums_of_keys);
  launch.gated(a.q, launch.inverse_q, launch.sums_of_keys, a.out);
}

template <typename T>
void gradients_of(const HydraArguments& a, const HydraGradients& gradients, const cudaStream_t stream) {
  const Launches<T> launch(a, stream);
  launch.norms(a.q, launch.inverse_q);
  launch.norms(a.k, launch.inverse_k);
  launch.sums(a.k, a.v, launch.inverse_k, launch.sums_of_keys);
  launch.sums(a.q, gradients.g, launch.inverse_q, launch.sums_of_queries);
  launch.by_rows(a.q, gradients.g, launch.inverse_q, launch.sums_of_keys, gradients.q);
  launch.by_rows(a.k, a.v, launch.inverse_k, launch.sums_of_queries, gradients.k);
  launch.gated(a.k, launch.inverse_k, launch.sums_of_queries, gradients.v);
}

// Calls run(T()) for the element type. Returns null, or CUDA's error message of the launches.
template <typename Run>
const char* with_element(const Element element, const Run& run) {
  cudaGetLastError(); // clears earlier errors
  switch (element) {
    case Element::float32: run(float()); break;
    case Element::float16: run(__half()); break;
    case Element::bfloat16: run(__nv_bfloat16()); break;
  }
  return message_of(cudaGetLastError());
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
    output<std::decay_t<decltype(element)>>(arguments, static_cast<cudaStream_t>(stream));
  });
}

const char* hydra_cosine_gradients(const HydraArguments& arguments, const HydraGradients& gradients,
                                   void* stream) {
  return with_element(arguments.element, [&](const auto element) {
    gradients_of<std::decay_t<decltype(element)>>(arguments, gradients, static_cast<cudaStream_t>(stream));
  });
}

} // namespace hydrascope::cuda
