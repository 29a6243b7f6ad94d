// Hydra attention (Bolya et al. 2022, Eq. 10): as many heads as features, out = φ(Q) ⊙ Σ_t φ(K)_t ⊙ V_t.
#pragma once

#include "engine/attention/registry.h"

namespace hydrascope {

// φ of D-wide rows: x (B,N,D) in its compute type with masked rows 0, mask (B,N) bool or undefined → (B,N,D)
// with masked rows 0.
using RowMap = at::Tensor (*)(const at::Tensor& x, const at::Tensor& mask);

// Does the whole operation without autograd where it can, e.g. by a fused loop: false where it cannot. Its
// decision depends on the shape alone; mask may be undefined; out (B,H,N,d) is what it returns.
struct HydraFusedPath {
  std::string (*available)(const AttentionShape& shape); // the path's name; empty: not for this shape
  at::Tensor (*run)(const AttentionInput& input, const at::Tensor& mask);
};

struct HydraMaps {
  RowMap query;
  RowMap key;
  std::vector<HydraFusedPath> fused = {};
};

// The kernel of these maps. Its weights are derived and signed: Σ over the features of each original head of
// φ(Q)_f φ(K)_fᵀ.
std::unique_ptr<Kernel> make_hydra(const KernelSpec& spec, const HydraMaps& maps);

} // namespace hydrascope
