// Launches of linear.cu. No LibTorch and no CUDA headers: both sides of the plug-in include this.
#pragma once

#include <cstdint>

#include "engine/attention/cuda/program.h"
#include "engine/attention/simd/loop_types.h"

namespace hydrascope::cuda {

// Heads on the device: element (b, h, t, c) lies at data[b·batch_stride + h·head_stride + t·token_stride +
// c].
struct HeadsOnDevice {
  const void* data;
  std::int64_t batch_stride, head_stride, token_stride;
};

// The projection before φ on one side: y = scale · (x·W + b) − half_square · ‖x‖².
struct SideArguments {
  const float* weight; // (H,d,m) or, with weight_stride 0, (d,m) for all heads; null: W = I
  const float* bias;   // (H,m); null: 0
  // Of PointMap::relu_token_weighted: (B,N,2) or, with token_weights_stride 0, (N,2).
  const float* token_weights;
  std::int64_t weight_stride;        // floats from head to head
  std::int64_t token_weights_stride; // floats from sequence to sequence
  float scale, half_square;
};

struct LinearArguments {
  Element element;       // of v and out
  Element input_element; // of q and k: that of v or, of bfloat16, float32
  cpu::PointMap map;
  bool normalised; // whether outputs are divided by φ(q)·Σφ(k)
  bool causal;     // a token attends to itself and those before it
  HeadsOnDevice q, k, v;
  SideArguments query, key;
  const unsigned char* mask; // (B,N) bytes, 0 = masked; null: all real
  void* out;                 // (B,N,H,d), dense; null: only gradients are computed
  float* workspace;          // linear_workspace_floats() floats
  std::int64_t batch, heads, tokens;
  int head_width; // d, entries of v
  int inputs;     // entries of q and k: d, or m where q and k are y themselves
  int outputs;    // m, entries of y
  int features;   // features_of(map, m)
};

// Input and output of the gradients of linear_attention() on y; all but g dense and of its type.
struct LinearGradients {
  HeadsOnDevice g; // (B,H,N,d): the gradient with respect to the output
  // The gradients with respect to y of the queries and of the keys (B,N,H,m), and v (B,N,H,d).
  void *q, *k, *v;
};

inline int features_of(const cpu::PointMap map, const int outputs) {
  return cpu::has_two_halves(map) ? 2 * outputs : outputs;
}

// Whether linear_attention() supports this map: up to 256 features, d up to 128, without a normaliser float32
// only.
bool linear_takes(cpu::PointMap map, bool normalised, Element element, std::int64_t head_width,
                  std::int64_t outputs, bool causal);
// Whether linear_gradients() supports it: as above except float16, whose range sums over tokens may exceed.
bool linear_gradients_take(cpu::PointMap map, bool normalised, Element element, std::int64_t head_width,
                           std::int64_t outputs, bool causal);
std::int64_t linear_workspace_floats(const LinearArguments& arguments);

// Linear attention on a cudaStream_t (Hedgehog paper, Eq. 2; without a normaliser Hydra paper, Eq. 7). When
// the stream has executed it, the first entry of the workspace, an int, is the number of real tokens whose
// denominator was 0. Returns null, or CUDA's error message.
const char* linear_attention(const LinearArguments& arguments, void* stream);

// Its gradients, without a projection: q and k are y, inputs = outputs; their gradients are of their type.
// The sums over keys are recomputed, so that only q, k and v need to be kept. Returns as above.
const char* linear_gradients(const LinearArguments& arguments, const LinearGradients& gradients,
                             void* stream);

} // namespace hydrascope::cuda
