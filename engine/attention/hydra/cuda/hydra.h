// Launches of hydra.cu. No LibTorch and no CUDA headers: both sides of the plug-in include this.
#pragma once

#include <cstdint>

#include "engine/attention/cuda/program.h"

namespace hydrascope::cuda {

// D-wide rows on the device: element (b, t, f) lies at data[b·batch_stride + t·token_stride + f].
struct RowsOnDevice {
  const void* data;
  std::int64_t batch_stride;
  std::int64_t token_stride;
};

struct HydraArguments {
  Element element;
  bool causal; // a token attends to itself and those before it
  RowsOnDevice q, k, v;
  const unsigned char* mask; // (B,N) bytes, 0 = masked; null: all real
  void* out;                 // (B,N,D), dense; null: only gradients are computed
  float* workspace;          // hydra_workspace_floats() floats
  std::int64_t batch, tokens, width;
};

// Input and output of the gradients of hydra_cosine().
struct HydraGradients {
  RowsOnDevice g;  // the gradient with respect to the output
  void *q, *k, *v; // the gradients with respect to each, (B,N,D), dense
};

// The number of parts that tokens are summed in before the sums are added: enough blocks to fill a GPU, few
// enough to add.
int hydra_token_parts(std::int64_t tokens);
std::int64_t hydra_workspace_floats(std::int64_t batch, std::int64_t tokens, std::int64_t width, bool causal);

// out = q/‖q‖₂ ⊙ Σ_t k_t/‖k_t‖₂ ⊙ v_t on a cudaStream_t, over all tokens or those that a token attends to.
// Returns null, or CUDA's error message.
const char* hydra_cosine(const HydraArguments& arguments, void* stream);

// Its gradients. Norms and sums are recomputed, so that only q, k and v need to be kept.
const char* hydra_cosine_gradients(const HydraArguments& arguments, const HydraGradients& gradients,
                                   void* stream);

} // namespace hydrascope::cuda
