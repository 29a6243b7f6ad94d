// Inputs of the kernel tests: random, reproducible, of any shape.
#pragma once

#include <cstdint>

#include "engine/attention/interface/kernel.h"

namespace hydrascope::testing_inputs {

struct Case {
  std::int64_t batch = 1, heads = 1, tokens = 1, width = 1;
  bool masked = false;
  bool causal = false;
  TokenLayout layout = {}; // text
};
std::string describe(const Case& shape);

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed);

// q, k, v and the layer's input normal, q and k times `scale`; `masked` leaves out about a third of the
// tokens, the first of the first sequence among them, and all of the last sequence where there is more than
// one.
AttentionInput make_input(const Case& shape, std::uint64_t seed, double scale = 1);

// Starting values moved by noise, so that no part of them is 0 or 1. key_heads: as of AttentionInput.
KernelParameters moved_parameters(const Kernel& kernel, const Case& shape, std::uint64_t seed,
                                  std::int64_t key_heads = 0);

// Largest |a − b| over the largest |b|.
double relative_error(const at::Tensor& a, const at::Tensor& b);

} // namespace hydrascope::testing_inputs
