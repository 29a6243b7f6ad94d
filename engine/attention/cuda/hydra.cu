// hydra-cosine on the GPU (Bolya et al. 2022, Eq. 10): out = q/‖q‖₂ ⊙ Σ_t k_t/‖k_t‖₂ ⊙ v_t over D-wide rows.
//   1. inverse norms of all rows of q and k, a warp each;
//   2. partial sums over a share of the tokens, a thread per feature;
//   3. the partial sums added, in a fixed order, so that results repeat to the bit;
//   4. out = gate × global vector.
// All sums are float32. Masked tokens are skipped before they are read: they may hold NaN.
#include <cuda_runtime.h>

#include "engine/attention/cuda/elements.cuh"
#include "engine/attention/cuda/hydra.h"

namespace hydrascope::cuda {
namespace {

constexpr int warp = 32;
constexpr int block_threads = 256;
constexpr float smallest_norm = 1e-12f;

template <typename T>
struct Rows {
  const T* data;
  long long batch_stride, token_stride;
  const __device__ T* row(long long b, long long t) const {
    return data + b * batch_stride + t * token_stride;
  }
};

// A warp per row (b, t); 0 for masked rows.
template <typename T>
__global__ void inverse_norms(Rows<T> x, const unsigned char* mask, float* inverse, long long batch,
                              long long tokens, long long width) {
  const long long index = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / warp;
  if (index >= batch * tokens) return; // whole warps leave together
  const int lane = threadIdx.x % warp;
  const bool real = mask == nullptr || mask[index] != 0;
  float sum = 0;
  if (real) {
    const T* row = x.row(index / tokens, index % tokens);
    for (long long f = lane; f < width; f += warp) {
      const float value = to_float(row[f]);
      sum += value * value;
    }
  }
  for (int offset = warp / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (lane == 0) inverse[index] = real ? 1.0f / fmaxf(sqrtf(sum), smallest_norm) : 0.0f;
}

// Block (features, part, b): partial[b][part][f] = Σ over the part's tokens of k·v/‖k‖.
template <typename T>
__global__ void partial_sums(Rows<T> k, Rows<T> v, const unsigned char* mask, const float* inverse,
                             float* partial, long long tokens, long long width) {
  const long long f = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (f >= width) return;
  const long long b = blockIdx.z, part = blockIdx.y, parts = gridDim.y;
  const long long first = tokens * part / parts, last = tokens * (part + 1) / parts;
  float sum = 0;
  for (long long t = first; t < last; ++t) {
    if (mask != nullptr && mask[b * tokens + t] == 0) continue;
    sum += to_float(k.row(b, t)[f]) * inverse[b * tokens + t] * to_float(v.row(b, t)[f]);
  }
  partial[(b * parts + part) * width + f] = sum;
}

__global__ void add_parts(const float* partial, float* global, long long parts, long long width) {
  const long long f = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (f >= width) return;
  const long long b = blockIdx.z;
  float sum = 0;
  for (long long part = 0; part < parts; ++part) sum += partial[(b * parts + part) * width + f];
  global[b * width + f] = sum;
}

template <typename T>
__global__ void gate(Rows<T> q, const unsigned char* mask, const float* inverse, const float* global, T* out,
                     long long batch, long long tokens, long long width) {
  const long long count = batch * tokens * width;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const long long token = i / width, f = i % width, b = token / tokens;
    const bool real = mask == nullptr || mask[token] != 0;
    const float value =
        real ? to_float(q.row(b, token % tokens)[f]) * inverse[token] * global[b * width + f] : 0.0f;
    out[i] = from_float<T>(value);
  }
}

long long blocks_for(long long threads) { return (threads + block_threads - 1) / block_threads; }

template <typename T>
Rows<T> typed(const RowsOnDevice& rows) {
  return {static_cast<const T*>(rows.data), rows.batch_stride, rows.token_stride};
}

template <typename T>
void launch(const HydraArguments& a, cudaStream_t stream) {
  const long long batch = a.batch, tokens = a.tokens, width = a.width;
  const int parts = hydra_token_parts(tokens);
  float* const inverse_q = a.workspace;
  float* const inverse_k = inverse_q + batch * tokens;
  float* const partial = inverse_k + batch * tokens;
  float* const global = partial + batch * parts * width;
  const auto feature_blocks = static_cast<unsigned>(blocks_for(width));
  const auto row_blocks = static_cast<unsigned>(blocks_for(batch * tokens * warp));
  const auto sequences = static_cast<unsigned>(batch);

  inverse_norms<T>
      <<<row_blocks, block_threads, 0, stream>>>(typed<T>(a.q), a.mask, inverse_q, batch, tokens, width);
  inverse_norms<T>
      <<<row_blocks, block_threads, 0, stream>>>(typed<T>(a.k), a.mask, inverse_k, batch, tokens, width);
  partial_sums<T><<<dim3(feature_blocks, parts, sequences), block_threads, 0, stream>>>(
      typed<T>(a.k), typed<T>(a.v), a.mask, inverse_k, partial, tokens, width);
  add_parts<<<dim3(feature_blocks, 1, sequences), block_threads, 0, stream>>>(partial, global, parts, width);
  const long long enough = blocks_for(batch * tokens * width);
  gate<T><<<static_cast<unsigned>(enough < 65535 ? enough : 65535), block_threads, 0, stream>>>(
      typed<T>(a.q), a.mask, inverse_q, global, static_cast<T*>(a.out), batch, tokens, width);
}

} // namespace

int hydra_token_parts(std::int64_t tokens) {
  const std::int64_t parts = (tokens + 31) / 32;
  return static_cast<int>(parts < 64 ? parts : 64);
}

std::int64_t hydra_workspace_floats(std::int64_t batch, std::int64_t tokens, std::int64_t width) {
  return batch * (2 * tokens + (hydra_token_parts(tokens) + 1) * width);
}

const char* hydra_cosine(const HydraArguments& arguments, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  switch (arguments.element) {
    case Element::float32: launch<float>(arguments, cuda_stream); break;
    case Element::float16: launch<__half>(arguments, cuda_stream); break;
    case Element::bfloat16: launch<__nv_bfloat16>(arguments, cuda_stream); break;
  }
  const cudaError_t outcome = cudaGetLastError();
  return outcome == cudaSuccess ? nullptr : cudaGetErrorString(outcome);
}

} // namespace hydrascope::cuda
