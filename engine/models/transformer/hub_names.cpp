#include "engine/models/transformer/hub_names.h"

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

constexpr std::string_view block = "encoder.layer.";

struct NamePair {
  std::string_view canonical, hub;
};
constexpr std::array<NamePair, 5> gpt2_inside{{{"input_layernorm.", "ln_1."},
                                               {"post_attention_layernorm.", "ln_2."},
                                               {"self_attn.o_proj.", "attn.c_proj."},
                                               {"mlp.up_proj.", "mlp.c_fc."},
                                               {"mlp.down_proj.", "mlp.c_proj."}}};
constexpr std::array<NamePair, 3> gpt2_outside{
    {{"embed_tokens.", "wte."}, {"embed_positions.", "wpe."}, {"norm.", "ln_f."}}};

bool starts_with_any(const std::string& name, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view beginning : beginnings)
    if (name.starts_with(beginning)) return true;
  return false;
}

// BERT, ViT, DeiT and DINOv2: what is not a head lies below the model.
TensorMap with_prefix(const std::string& prefix, const TensorMap& canonical) {
  TensorMap result;
  for (const auto& [name, tensor] : canonical) {
    const bool head =
        starts_with_any(name, {"classifier.", "cls_classifier.", "distillation_classifier.", "cls."});
    result[head ? name : prefix + name] = tensor;
  }
  return result;
}

TensorMap as_llama(const TensorMap& canonical) {
  TensorMap result;
  for (const auto& [name, tensor] : canonical) {
    std::string own = name;
    if (own.starts_with(block)) own.replace(0, block.size(), "layers.");
    result[own.starts_with("lm_head.") ? own : "model." + own] = tensor;
  }
  return result;
}

// "N." of encoder.layer.N.…, and what follows.
std::pair<std::string, std::string> number_and_rest(const std::string& name) {
  const auto dot = name.find('.', block.size()) + 1;
  return {name.substr(block.size(), dot - block.size()), name.substr(dot)};
}

// Conv1D keeps (in,out).
at::Tensor as_convolution(const std::string& name, const at::Tensor& tensor) {
  return name.ends_with(".weight") && tensor.dim() == 2 ? tensor.t() : tensor;
}

void add_gpt2_block(TensorMap& result, const TensorMap& canonical, const std::string& name,
                    const at::Tensor& tensor) {
  constexpr std::string_view query = "self_attn.q_proj.";
  const auto [number, rest] = number_and_rest(name);
  const std::string layer = "transformer.h." + number;
  if (rest.starts_with(query)) {
    const std::string kind = rest.substr(query.size()); // weight or bias
    const std::string prefix = std::string(block) + number;
    const std::vector<at::Tensor> parts{tensor, canonical.at(prefix + "self_attn.k_proj." + kind),
                                        canonical.at(prefix + "self_attn.v_proj." + kind)};
    result[layer + "attn.c_attn." + kind] = as_convolution(name, at::cat(parts));
    return;
  }
  for (const NamePair& pair : gpt2_inside)
    if (rest.starts_with(pair.canonical)) {
      const std::string own = layer + std::string(pair.hub) + rest.substr(pair.canonical.size());
      result[own] = as_convolution(name, tensor);
    }
}

TensorMap as_gpt2(const TensorMap& canonical) {
  TensorMap result;
  for (const auto& [name, tensor] : canonical) {
    if (name.starts_with(block)) {
      add_gpt2_block(result, canonical, name, tensor);
      continue;
    }
    std::string own = name;
    for (const NamePair& pair : gpt2_outside)
      if (name.starts_with(pair.canonical))
        own = "transformer." + std::string(pair.hub) + name.substr(pair.canonical.size());
    result[own] = tensor;
  }
  return result;
}

} // namespace

TensorMap hub_tensors(const std::string& family, const TensorMap& canonical) {
  if (family == "gpt2") return as_gpt2(canonical);
  if (family == "llama") return as_llama(canonical);
  for (const char* known : {"bert", "vit", "deit", "dinov2"})
    if (family == known || (family == "deit-distilled" && std::string_view(known) == "deit"))
      return with_prefix(std::string(known) + ".", canonical);
  throw Error(family, "is no family of transformers", "write its tensors under their own names");
}

} // namespace hydrascope
