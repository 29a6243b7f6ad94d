// What is read off one layer's q, k, v for several kernels at once: they share softmax's weights and ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/runtime/pass.h"

namespace hydrascope {

struct FactKinds {
  bool entropy = false, kl = false, change = false, spearman = false;
  bool any() const { return entropy || kl || change || spearman; }
};

// Whether entropy and KL are defined for a kernel.
bool has_distributions(const KernelInfo& info);

// Per sequence and head, means over real rows; undefined tensors for what was not asked for or has no meaning
// for the kernel: entropy and KL without positive, normalised weights, KL of a kernel that splits the
// features into another number of heads than softmax here. h = the kernel's own number of heads.
struct KernelFacts {
  at::Tensor entropy;       // (B,h) float64, nats
  at::Tensor kl;            // (B,H) float64, KL(softmax ‖ kernel) in nats
  at::Tensor spearman;      // (B,h) float64, ρ of weights and q·k/√d; NaN without a row that counts
  at::Tensor change;        // (B,H,3) float64: ratio of norms, cosine, relative error
  double clamped_share = 0; // of the entries that KL looks at
  std::int64_t zero_denominators = 0; // with `change`: rows set to zero because their normaliser was 0
};

// Weights are formed in tiles of query rows. Throws as the kernels do.
std::vector<KernelFacts> kernel_facts(const FactKinds& kinds, const AttentionInput& input,
                                      std::span<const LayerKernel> kernels);

} // namespace hydrascope
