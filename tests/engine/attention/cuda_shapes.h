// The shapes at which the fused CUDA kernels are compared with the CPU: on a GPU (cuda_test.cpp) and emulated
// (tests/cuda_emulation). No LibTorch.
#pragma once

#include <cstdint>

namespace hydrascope::testing_inputs {

struct CudaShape {
  std::int64_t batch = 1, heads = 1, tokens = 1, width = 1;
  bool masked = false;
};

// The last has rows that no warp keeps whole, and parts of the tokens that are added in two steps.
inline constexpr CudaShape cuda_hydra_shapes[] = {
    {1, 1, 1, 1},    {1, 2, 63, 8, true}, {2, 3, 197, 64},       {3, 12, 577, 64, true},
    {1, 5, 1025, 7}, {70, 1, 3, 1, true}, {1, 2, 530, 600, true}};

// Widths that the papers' models have, and one that fills no square of the tensor cores.
inline constexpr CudaShape cuda_linear_shapes[] = {
    {1, 1, 1, 7}, {2, 3, 197, 64, true}, {1, 2, 300, 32, true}, {1, 2, 1025, 80}, {1, 1, 70, 128}};

// (Of one token normalised attention gives back v: gradients of q and k are 0.)
inline constexpr CudaShape cuda_gradient_shapes[] = {
    {1, 1, 3, 7}, {2, 3, 197, 64, true}, {1, 2, 300, 32, true}, {1, 2, 1025, 80}, {1, 1, 70, 128}};

} // namespace hydrascope::testing_inputs
