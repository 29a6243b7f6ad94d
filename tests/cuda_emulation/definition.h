// Linear attention and hydra-cosine with their gradients in double precision, by plain loops: what the
// emulated kernels are compared with. Without LibTorch, which is not built for sanitizers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/attention/simd/loop_types.h"

namespace hydrascope::testing_inputs {

// y = scale · (x·W + b) − half_square · ‖x‖².
struct DefinedProjection {
  std::vector<double> weight = {}; // (inputs, m); empty: the identity
  std::vector<double> bias = {};   // (m); empty: 0
  double scale = 1, half_square = 0;
};

// One head of one sequence. Rows of masked tokens are not read.
struct DefinedHead {
  cpu::PointMap map;
  bool normalised;
  bool causal;                                 // a token attends to itself and those before it
  std::int64_t tokens, width, inputs, outputs; // N, d, entries of q and k, m
  std::vector<double> q, k, v, g; // (N, inputs) twice, (N, d), and ∂L/∂out (N, d); without g: no gradients
  std::vector<double> token_weights; // (N, 2) of PointMap::relu_token_weighted
  std::vector<unsigned char> real;   // (N)
  DefinedProjection query, key;
};

// 0 in masked rows.
struct DefinedResult {
  std::vector<double> out;                    // (N, d)
  std::vector<double> grad_q, grad_k, grad_v; // ∂L/∂y of queries and of keys (N, m), ∂L/∂v (N, d)
  std::int64_t zero_denominators = 0;
};
DefinedResult defined_linear(const DefinedHead& head);

// The same of hydra-cosine, for rows of `width` features; q and k are the rows themselves.
DefinedResult defined_hydra(const DefinedHead& head);

} // namespace hydrascope::testing_inputs
