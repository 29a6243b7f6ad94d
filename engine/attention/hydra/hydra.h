// Hydra attention (Bolya et al. 2022, Eq. 10): as many heads as features, out = φ_Q(Q) ⊙ Σ_t φ_K(K)_t ⊙ V_t.
// Causal: the sum over t ≤ i, in which whatever depends on other tokens depends on those up to i alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// φ of D-wide rows, each by itself.
struct RowMap {
  std::function<at::Tensor(const at::Tensor& x)> of = {}; // (B,N,D) → (B,N,D), in x's type
  std::optional<cpu::RowMap> fused = {};                  // the same map in the fused loops
};

// The part of φ that depends on other tokens.
enum class OverTokens {
  nothing,
  mean, // φ_Q and φ_K are divided by √T, T the number of real tokens; causal: of those up to the query,
        // so that the sum becomes a mean over them
  softmax, // φ_K is a softmax over the real tokens, feature by feature; causal: over those up to the query
};

// A fused implementation of the whole operation. takes(): whether it supports the input. run() returns out
// (B,H,N,d) before LayerNorm; mask (B,N) bool or undefined.
struct HydraMaps;
struct HydraFusedPath {
  Path path = Path::fused_cpu;
  bool (*takes)(const AttentionShape& shape) = nullptr;
  at::Tensor (*run)(const HydraMaps& maps, const AttentionInput& input, const at::Tensor& mask) = nullptr;
};

struct HydraMaps {
  RowMap query = {};
  RowMap key = {};
  OverTokens over_tokens = OverTokens::nothing;
  bool query_is_layer_input = false;      // Q is the attention module's own input (PolyNL, Eq. 13)
  bool layer_norm = false;                // over D, before W_o
  std::vector<HydraFusedPath> fused = {}; // besides the CPU's, which all have whose maps the loops have
  // Why the maps do not support this input; empty if they do.
  std::function<std::string(const AttentionShape& shape)> refusal = {};
};

// The Hydra kernel with these maps. Its weights are derived and signed: Σ over the features of each original
// head of φ(Q)_f φ(K)_fᵀ.
std::unique_ptr<Kernel> make_hydra(const KernelSpec& spec, const HydraMaps& maps);

// The CPU's fused loops (cpu/hydra.h), for inputs of any strides: float32 and bfloat16 without gradients,
// every map. Tokens are processed in parts whose number depends on N alone, so the result does not depend on
// the number of threads.
HydraFusedPath hydra_on_cpu();
// The causal form, after the tokens in `sums`, one for each sequence, to which these are added; empty: there
// are none.
at::Tensor causal_hydra_on_cpu(const HydraMaps& maps, const AttentionInput& input, const at::Tensor& mask,
                               std::vector<cpu::CausalHydraSums>& sums);

} // namespace hydrascope
