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
  RowsOnDevice q, k, v;
  const unsigned char* mask; // (B,N) bytes, 0 = masked; null: all real
  void* out;                 // (B,N,D), dense; null: gradients alone are asked for
  float* workspace;          // hydra_workspace_floats() floats
  std::int64_t batch, tokens, width;
};

// What the gradients of hydra_cosine() take and give.
struct HydraGradients {
  RowsOnDevice g;  // the loss by the output
  void *q, *k, *v; // the loss by each, (B,N,D), dense
};

// Tokens are summed in this many parts, whose sums are then added: enough blocks to fill a GPU, few enough to
// add.
int hydra_token_parts(std::int64_t tokens);
std::int64_t hydra_workspace_floats(std::int64_t batch, std::int64_t tokens, std::int64_t width);

// out = q/‖q‖₂ ⊙ Σ_t k_t/‖k_t‖₂ ⊙ v_t on a cudaStream_t. Returns null, or what CUDA says went wrong.
const char* hydra_cosine(const HydraArguments& arguments, void* stream);

// Its gradients. Norms and sums are made again, so that nothing but q, k and v need be kept.
const char* hydra_cosine_gradients(const HydraArguments& arguments, const HydraGradients& gradients,
                                   void* stream);

} // namespace hydrascope::cuda
