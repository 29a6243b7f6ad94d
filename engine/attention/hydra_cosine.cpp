// Hydra with cosine similarity: φ(x) = x/‖x‖₂ of the D-wide row (Bolya et al. 2022, Eq. 7 and 10).
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "engine/attention/cuda/plugin.h"
#include "engine/attention/cuda_plugin.h"
#include "engine/attention/hydra.h"

namespace hydrascope {
namespace {

at::Tensor unit_rows(const at::Tensor& x, const at::Tensor& /*mask*/) {
  return x / at::linalg_vector_norm(x, 2, at::IntArrayRef({-1}), true).clamp_min(1e-12);
}

std::string fused_cuda_available(const AttentionShape& shape) {
  constexpr std::int64_t most_sequences = 65535; // of one launch
  const bool known_type =
      shape.dtype == at::kFloat || shape.dtype == at::kHalf || shape.dtype == at::kBFloat16;
  if (shape.device != at::kCUDA || shape.causal || !known_type || shape.batch > most_sequences) return {};
  return cuda_plugin() == nullptr ? "" : "fused cuda";
}

at::Tensor fused_cuda(const AttentionInput& input, const at::Tensor& mask) {
  return cuda_plugin()->hydra_cosine(input.q, input.k, input.v, mask);
}

} // namespace

RegistryEntry hydra_cosine_kernel() {
  KernelInfo info;
  info.name = "hydra-cosine";
  info.family = "hydra";
  info.definition = "φ(x) = x/‖x‖₂ of D-wide rows, out = φ(Q) ⊙ Σ_t φ(K)_t ⊙ V_t";
  info.complexity = "O(N D)";
  info.feature_width = "D";
  info.source = "Bolya et al. (2022), Eq. 7 and 10";
  info.published = "76.37 % top-1 (DeiT-B, 12 layers)";
  info.map_bounded = true;
  info.map_signed = true;
  info.devices = {"cpu", "cuda"};
  return {info, {}, [](const KernelSpec& spec) {
            return make_hydra(spec, {unit_rows, unit_rows, {{fused_cuda_available, fused_cuda}}});
          }};
}

} // namespace hydrascope
