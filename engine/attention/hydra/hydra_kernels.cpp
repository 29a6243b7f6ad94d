// Hydra's feature maps (Bolya et al. 2022, tables 1 and 5), including PolyNL (Babiloni et al. 2021) and
// AFT-Simple (Zhai et al. 2021).
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <fmt/format.h>

#include "engine/attention/hydra/hydra.h"
#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device.h"

namespace hydrascope {
namespace {

template <int order>
at::Tensor unit_rows(const at::Tensor& x) {
  return x / at::linalg_vector_norm(x, order, at::IntArrayRef({-1}), true).clamp_min(1e-12);
}
RowMap unit_l2() { return {unit_rows<2>, cpu::RowMap::unit_l2}; }
RowMap unit_l1() { return {unit_rows<1>, cpu::RowMap::unit_l1}; }
RowMap same() {
  return {[](const at::Tensor& x) { return x; }, cpu::RowMap::scaled};
}
RowMap tanh_of() {
  return {[](const at::Tensor& x) { return at::tanh(x); }, cpu::RowMap::hyperbolic};
}
RowMap sigmoid_of() {
  return {[](const at::Tensor& x) { return at::sigmoid(x); }, cpu::RowMap::logistic};
}

bool cuda_takes(const AttentionShape& shape) {
  const bool known_type =
      shape.dtype == at::kFloat || shape.dtype == at::kHalf || shape.dtype == at::kBFloat16;
  if (!known_type || shape.batch > max_cuda_sequences) return false;
  const HydrascopeCudaPlugin* const plugin = fused_kernels(shape.device);
  return plugin != nullptr && plugin->runs_on(shape.device_index);
}
bool cuda_runs(const AttentionShape& shape) { return !shape.gradients && cuda_takes(shape); }
bool cuda_trains(const AttentionShape& shape) { return shape.gradients && cuda_takes(shape); }

at::Tensor fused_cuda(const HydraMaps&, const AttentionInput& input, const at::Tensor& mask) {
  return fused_kernels(input.q.device().type())->hydra_cosine(input.q, input.k, input.v, mask, input.causal);
}

at::Tensor fused_cuda_training(const HydraMaps&, const AttentionInput& input, const at::Tensor& mask) {
  return hydra_cosine_with_gradients(*fused_kernels(input.q.device().type()), input, mask);
}

constexpr MapProperties of_unit{
    .bounded = true, .takes_negatives = true, .linear = true, .up_to_length = true};
constexpr MapProperties of_tanh{.bounded = true, .takes_negatives = true};
constexpr MapProperties of_sigmoid{.bounded = true};
constexpr MapProperties of_softmax{.bounded = true};
constexpr MapProperties of_mean{.takes_negatives = true, .linear = true};

RegistryEntry hydra(const char* name, const char* definition, double top1, const MapProperties& query,
                    const MapProperties& key, HydraMaps maps) {
  KernelInfo info;
  info.name = name;
  info.family = KernelFamily::hydra;
  info.implied_weights = true;
  info.definition = definition;
  info.complexity = "O(N D)";
  info.feature_width = "D";
  info.source = "Bolya et al. (2022), Eq. 10 and table 5";
  info.published = fmt::format("{:.2f} % top-1 (DeiT-B, 12 layers)", top1);
  info.query_map = query;
  info.key_map = key;
  info.trainable = maps.layer_norm;
  info.uses_query_projection = !maps.query_is_layer_input;
  info.devices = {"cpu", "cuda"};
  return {info, {}, [maps = std::move(maps)](const KernelSpec& spec) { return make_hydra(spec, maps); }};
}

} // namespace

RegistryEntry hydra_cosine_kernel() {
  return hydra("hydra-cosine", "φ(x) = x/‖x‖₂ of D-wide rows, out = φ(Q) ⊙ Σ_t φ(K)_t ⊙ V_t", 76.37, of_unit,
               of_unit,
               {.query = unit_l2(),
                .key = unit_l2(),
                .fused = {{Path::fused_cuda, cuda_runs, fused_cuda},
                          {Path::fused_cuda_training, cuda_trains, fused_cuda_training}}});
}
RegistryEntry hydra_tanh_l2_kernel() {
  return hydra("hydra-tanh-l2", "φ_Q(x) = tanh x, φ_K(x) = x/‖x‖₂", 76.17, of_tanh, of_unit,
               {.query = tanh_of(), .key = unit_l2()});
}
RegistryEntry hydra_mean_kernel() {
  return hydra("hydra-mean", "φ(x) = x/√T", 75.95, of_mean, of_mean,
               {.query = same(), .key = same(), .over_tokens = OverTokens::mean});
}
RegistryEntry hydra_cosine_ln_kernel() {
  return hydra("hydra-cosine-ln", "as hydra-cosine, then LayerNorm over D", 75.74, of_unit, of_unit,
               {.query = unit_l2(), .key = unit_l2(), .layer_norm = true});
}
RegistryEntry hydra_tanh_l2_ln_kernel() {
  return hydra("hydra-tanh-l2-ln", "as hydra-tanh-l2, then LayerNorm over D", 75.22, of_tanh, of_unit,
               {.query = tanh_of(), .key = unit_l2(), .layer_norm = true});
}
RegistryEntry hydra_tanh_softmax_kernel() {
  return hydra("hydra-tanh-softmax", "φ_Q(x) = tanh x, φ_K = softmax over tokens, per feature", 74.18,
               of_tanh, of_softmax, {.query = tanh_of(), .key = same(), .over_tokens = OverTokens::softmax});
}
RegistryEntry hydra_sigmoid_softmax_kernel() {
  RegistryEntry entry =
      hydra("hydra-sigmoid-softmax",
            "φ_Q(x) = sigmoid x, φ_K = softmax over tokens, per feature (AFT-Simple)", 74.02, of_sigmoid,
            of_softmax, {.query = sigmoid_of(), .key = same(), .over_tokens = OverTokens::softmax});
  entry.aliases = {"aft-simple"};
  entry.info.weights_positive = true;
  return entry;
}
RegistryEntry hydra_l1_kernel() {
  return hydra("hydra-l1", "φ(x) = x/‖x‖₁", 70.75, of_unit, of_unit, {.query = unit_l1(), .key = unit_l1()});
}
RegistryEntry poly_nl_kernel() {
  RegistryEntry entry =
      hydra("poly-nl", "Q is the layer's own input x; φ(x) = x/√T", 73.96, of_mean, of_mean,
            {.query = same(), .key = same(), .over_tokens = OverTokens::mean, .query_is_layer_input = true});
  entry.info.source = "Bolya et al. (2022), Eq. 13, 14; Babiloni et al. (2021)";
  return entry;
}

} // namespace hydrascope
