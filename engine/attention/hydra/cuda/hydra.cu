// hydra-cosine on the GPU: the programs of hydra_programs.h and, causal, of hydra_causal_programs.h.
#include <cuda_runtime.h>

#include <type_traits>

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/hydra/cuda/hydra.h"
#include "engine/attention/hydra/cuda/hydra_causal_programs.h"
#include "engine/attention/hydra/cuda/hydra_programs.h"

namespace hydrascope::cuda {
namespace {

// Rows, read and written in pieces of `elements`: of 16 bytes, or of one element where rows are not aligned.
template <typename T, int elements>
struct Rows {
  static constexpr int count = elements;
  using Piece = cuda::Piece<T, elements>;
  const T* data;
  std::int64_t batch_stride, token_stride;
  explicit Rows(const RowsOnDevice& rows)
      : data(static_cast<const T*>(rows.data)),
        batch_stride(rows.batch_stride),
        token_stride(rows.token_stride) {}
  __device__ Piece operator()(const std::int64_t b, const std::int64_t t, const int f) const {
    return *reinterpret_cast<const Piece*>(data + b * batch_stride + t * token_stride + f);
  }
  static __device__ float number(const Piece& piece, const int i) { return to_float(piece.at[i]); }
};
template <typename T, int elements>
struct DenseWriter {
  T* to;
  std::int64_t tokens, width;
  __device__ void operator()(const std::int64_t b, const std::int64_t t, const int f,
                             const float (&values)[elements]) const {
    Piece<T, elements> piece;
    HYDRASCOPE_UNROLL
    for (int i = 0; i < elements; ++i) piece.at[i] = from_float<T>(values[i]);
    store(to + (b * tokens + t) * width + f, piece);
  }
};
struct NoWriter {
  template <int elements>
  __device__ void operator()(std::int64_t, std::int64_t, int, const float (&)[elements]) const {}
};

__device__ HydraSlice slice_of_block() { return {blockIdx.z, static_cast<int>(blockIdx.y)}; }

template <typename Rows>
__global__ __launch_bounds__(block_threads, 2) void sums_kernel(const HydraShape shape, const Rows x,
                                                                const Rows y, float* const partial,
                                                                unsigned* const counters, float* const sums) {
  HYDRASCOPE_SHARED_MEMORY(shared);
  DeviceBlock block;
  const int parts = static_cast<int>(gridDim.x);
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
  sums_of_rows(block, shape, slice_of_block(), static_cast<int>(blockIdx.x), parts, x, y, shared,
               partial + index * parts * slice_width(Rows::count), counters + index * counters_of_slice,
               sums);
}
template <typename Rows, typename Writer>
__global__ __launch_bounds__(block_threads, 2) void gate_kernel(const HydraShape shape, const Rows x,
                                                                const float* const sums, const Writer write) {
  DeviceBlock block;
  gate(block, shape, slice_of_block(), blockIdx.x, x, sums, write);
}
template <typename Rows, typename WriterX, typename WriterY>
__global__ __launch_bounds__(block_threads, 1) void through_norm_kernel(const HydraShape shape, const Rows x,
                                                                        const Rows y, const float* const sums,
                                                                        const WriterX write_x,
                                                                        const WriterY write_y) {
  DeviceBlock block;
  through_norm(block, shape, slice_of_block(), blockIdx.x, x, y, sums, write_x, write_y);
}

__device__ HydraChunks chunks_of_block(const bool backwards) {
  return {slice_of_block(), blockIdx.x, backwards};
}

template <typename Rows>
__global__ __launch_bounds__(block_threads, 1) void sums_of_chunks_kernel(const HydraShape shape,
                                                                          const Rows x, const Rows y,
                                                                          float* const sums) {
  DeviceBlock block;
  sums_of_chunks(block, shape, chunks_of_block(false), x, y, sums); // of a chunk, whatever the order
}
__global__ __launch_bounds__(block_threads) void sums_before_chunks_kernel(const HydraShape shape,
                                                                           const bool backwards,
                                                                           float* const sums) {
  DeviceBlock block;
  sums_before_chunks(block, shape, blockIdx.z, blockIdx.x, backwards, sums);
}
template <typename Rows, typename Writer>
__global__ __launch_bounds__(block_threads, 1) void causal_gate_kernel(const HydraShape shape, const Rows k,
                                                                       const Rows v, const Rows q,
                                                                       const float* const before,
                                                                       const Writer write) {
  DeviceBlock block;
  causal_gate(block, shape, chunks_of_block(false), k, v, q, before, write);
}
template <typename Rows, typename WriterX, typename WriterY>
__global__ __launch_bounds__(block_threads, 1) void causal_through_norm_kernel(
    const HydraShape shape, const bool backwards, const Rows a, const Rows b, const Rows x, const Rows y,
    const float* const before, const HydraDots dots, const WriterX write_x, const WriterY write_y) {
  DeviceBlock block;
  causal_through_norm(block, shape, chunks_of_block(backwards), a, b, x, y, before, dots, write_x, write_y);
}

bool aligned(const RowsOnDevice& rows, const std::int64_t width, const int element_bytes) {
  const auto multiple = [&](const std::int64_t elements) { return elements * element_bytes % 16 == 0; };
  return at_16_bytes(rows.data) && multiple(rows.batch_stride) && multiple(rows.token_stride) &&
         multiple(width);
}

// Programs over their grids, one after another until one fails.
template <typename T, int elements>
struct Launches {
  using Read = Rows<T, elements>;
  using Writer = DenseWriter<T, elements>;
  HydraShape shape;
  cudaStream_t stream;
  cudaError_t outcome = cudaSuccess;

  Launches(const HydraArguments& a, cudaStream_t stream_)
      : shape{a.mask, a.batch, a.tokens, a.width}, stream(stream_) {}

  dim3 grid(const std::int64_t x) const {
    return dim3(static_cast<unsigned>(x), static_cast<unsigned>(shape.slices(elements)),
                static_cast<unsigned>(shape.batch));
  }
  static Read read(const RowsOnDevice& rows) { return Read(rows); }
  Writer writer(void* const to) const { return {static_cast<T*>(to), shape.tokens, shape.width}; }

  template <typename... Parameters>
  void then(void (*kernel)(HydraShape, Parameters...), const dim3 blocks, const int shared_floats,
            const typename Type<Parameters>::type&... arguments) {
    if (outcome == cudaSuccess)
      outcome = launch(kernel, blocks, static_cast<std::size_t>(shared_floats) * sizeof(float), stream, shape,
                       arguments...);
  }
};

// Over all tokens, with the workspace.
template <typename T, int elements>
struct OfAllTokens : Launches<T, elements> {
  using Base = Launches<T, elements>;
  using Base::shape, Base::grid, Base::read, Base::writer, Base::then;
  using typename Base::Read, typename Base::Writer;
  int parts;
  float *sums_of_keys, *sums_of_queries, *partial;
  unsigned *counters_of_keys, *counters_of_queries;

  OfAllTokens(const HydraArguments& a, cudaStream_t stream_)
      : Base(a, stream_),
        parts(hydra_token_parts(a.tokens)),
        sums_of_keys(a.workspace),
        sums_of_queries(sums_of_keys + a.batch * a.width),
        partial(sums_of_queries + a.batch * a.width),
        counters_of_keys(reinterpret_cast<unsigned*>(partial + a.batch * shape.slices(elements) * parts *
                                                                   slice_width(elements))),
        counters_of_queries(counters_of_keys + counters()) {
    this->outcome = cudaMemsetAsync(counters_of_keys, 0,
                                    2 * static_cast<std::size_t>(counters()) * sizeof(unsigned), stream_);
  }

  std::int64_t counters() const { return shape.batch * shape.slices(elements) * counters_of_slice; }
  dim3 row_blocks() const {
    constexpr int rows = rows_of_block * rows_of_warp;
    return grid((shape.tokens + rows - 1) / rows);
  }

  void sums(const RowsOnDevice& x, const RowsOnDevice& y, unsigned* const counters, float* const to) {
    then(sums_kernel<Read>, grid(parts), hydra_shared_floats(elements), read(x), read(y), partial, counters,
         to);
  }
  void gated(const RowsOnDevice& x, const float* const sums, void* const to) {
    then(gate_kernel<Read, Writer>, row_blocks(), 0, read(x), sums, writer(to));
  }
  void by_queries(const RowsOnDevice& q, const RowsOnDevice& g, void* const to) {
    then(through_norm_kernel<Read, Writer, NoWriter>, row_blocks(), 0, read(q), read(g), sums_of_keys,
         writer(to), NoWriter());
  }
  void by_keys(const RowsOnDevice& k, const RowsOnDevice& v, void* const to_k, void* const to_v) {
    then(through_norm_kernel<Read, Writer, Writer>, row_blocks(), 0, read(k), read(v), sums_of_queries,
         writer(to_k), writer(to_v));
  }
};

// Causal, with the workspace.
template <typename T, int elements>
struct Causal : Launches<T, elements> {
  using Base = Launches<T, elements>;
  using Base::shape, Base::grid, Base::read, Base::writer, Base::then;
  using typename Base::Read, typename Base::Writer;
  float *before, *dots;

  Causal(const HydraArguments& a, cudaStream_t stream_)
      : Base(a, stream_), before(a.workspace), dots(before + a.batch * hydra_chunks(a.tokens) * a.width) {
    if (shape.slices(elements) == 1) dots = nullptr;
  }

  dim3 chunk_blocks() const { return grid((hydra_chunks(shape.tokens) + rows_of_block - 1) / rows_of_block); }
  void sums(const RowsOnDevice& x, const RowsOnDevice& y, const bool backwards) {
    then(sums_of_chunks_kernel<Read>, chunk_blocks(), 0, read(x), read(y), before);
    const dim3 features(static_cast<unsigned>((shape.width + block_threads - 1) / block_threads), 1,
                        static_cast<unsigned>(shape.batch));
    then(sums_before_chunks_kernel, features, 0, backwards, before);
  }
  void gated(const HydraArguments& a) {
    then(causal_gate_kernel<Read, Writer>, chunk_blocks(), 0, read(a.k), read(a.v), read(a.q), before,
         writer(a.out));
  }
  template <typename WriterY>
  void through_norm(const RowsOnDevice& a, const RowsOnDevice& b, const RowsOnDevice& x,
                    const RowsOnDevice& y, const bool backwards, const Writer& write_x,
                    const WriterY& write_y) {
    sums(a, b, backwards);
    for (const bool are_written : {true, false})
      if (dots != nullptr || !are_written)
        then(causal_through_norm_kernel<Read, Writer, WriterY>, chunk_blocks(), 0, backwards, read(a),
             read(b), read(x), read(y), before, HydraDots{dots, are_written}, write_x, write_y);
  }
};

template <typename T, int elements>
cudaError_t output(const HydraArguments& a, cudaStream_t stream) {
  if (a.causal) {
    Causal<T, elements> launches(a, stream);
    launches.sums(a.k, a.v, false);
    launches.gated(a);
    return launches.outcome;
  }
  OfAllTokens<T, elements> launches(a, stream);
  launches.sums(a.k, a.v, launches.counters_of_keys, launches.sums_of_keys);
  launches.gated(a.q, launches.sums_of_keys, a.out);
  return launches.outcome;
}

template <typename T, int elements>
cudaError_t gradients_of(const HydraArguments& a, const HydraGradients& gradients, cudaStream_t stream) {
  if (a.causal) {
    Causal<T, elements> launches(a, stream);
    launches.through_norm(a.k, a.v, a.q, gradients.g, false, launches.writer(gradients.q), NoWriter());
    launches.through_norm(a.q, gradients.g, a.k, a.v, true, launches.writer(gradients.k),
                          launches.writer(gradients.v));
    return launches.outcome;
  }
  OfAllTokens<T, elements> launches(a, stream);
  launches.sums(a.k, a.v, launches.counters_of_keys, launches.sums_of_keys);
  launches.sums(a.q, gradients.g, launches.counters_of_queries, launches.sums_of_queries);
  launches.by_queries(a.q, gradients.g, gradients.q);
  launches.by_keys(a.k, a.v, gradients.k, gradients.v);
  return launches.outcome;
}

template <typename T, int count>
struct Elements {
  using type = T;
  static constexpr int value = count;
};

// Calls run(Elements<T, …>()) for the element type, with pieces of 16 bytes where all rows are aligned.
// Returns null, or CUDA's error message of the launches.
template <typename Run>
const char* with_elements(const HydraArguments& a, const HydraGradients* const gradients, const Run& run) {
  const auto of_type = [&](const auto zero) {
    using T = std::decay_t<decltype(zero)>;
    constexpr int bytes = static_cast<int>(sizeof(T));
    bool whole = at_16_bytes(a.out);
    for (const RowsOnDevice* const rows : {&a.q, &a.k, &a.v}) whole = whole && aligned(*rows, a.width, bytes);
    if (gradients != nullptr) {
      whole = whole && aligned(gradients->g, a.width, bytes);
      for (const void* const to : {gradients->q, gradients->k, gradients->v})
        whole = whole && at_16_bytes(to);
    }
    return message_of(whole ? run(Elements<T, 16 / bytes>()) : run(Elements<T, 1>()));
  };
  switch (a.element) {
    case Element::float32: return of_type(float());
    case Element::float16: return of_type(__half());
    case Element::bfloat16: return of_type(__nv_bfloat16());
  }
  return message_of(cudaErrorInvalidValue);
}

} // namespace

int hydra_token_parts(std::int64_t tokens) {
  const std::int64_t parts = (tokens + 31) / 32;
  return static_cast<int>(parts < max_parts ? parts : max_parts);
}

std::int64_t hydra_workspace_floats(std::int64_t batch, std::int64_t tokens, std::int64_t width,
                                    bool causal) {
  const HydraShape shape{nullptr, batch, tokens, width};
  if (causal) return batch * (hydra_chunks(tokens) * width + shape.slices(1) * tokens);
  const auto of_pieces = [&](const int count) { // of what depends on their number
    return std::int64_t{shape.slices(count)} *
           (std::int64_t{hydra_token_parts(tokens)} * slice_width(count) + 2 * counters_of_slice);
  };
  const std::int64_t scalar = of_pieces(1), whole = of_pieces(8);
  return batch * (2 * width + (scalar > whole ? scalar : whole));
}

const char* hydra_cosine(const HydraArguments& arguments, void* stream) {
  return with_elements(arguments, nullptr, [&](const auto elements) {
    using Chosen = decltype(elements);
    return output<typename Chosen::type, Chosen::value>(arguments, static_cast<cudaStream_t>(stream));
  });
}

const char* hydra_cosine_gradients(const HydraArguments& arguments, const HydraGradients& gradients,
                                   void* stream) {
  return with_elements(arguments, &gradients, [&](const auto elements) {
    using Chosen = decltype(elements);
    return gradients_of<typename Chosen::type, Chosen::value>(arguments, gradients,
                                                              static_cast<cudaStream_t>(stream));
  });
}

} // namespace hydrascope::cuda
