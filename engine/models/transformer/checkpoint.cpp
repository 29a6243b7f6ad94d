#include "engine/models/transformer/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/config_fields.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/models/hub/hub_cache.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

using Mapping = std::shared_ptr<const FileMapping>;

// Marks the storage of a mapped tensor, too.
void unmap(void* mapping) { delete static_cast<Mapping*>(mapping); }

at::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::f64: return at::kDouble;
    case ElementType::f32: return at::kFloat;
    case ElementType::f16: return at::kHalf;
    case ElementType::bf16: return at::kBFloat16;
    case ElementType::i64: return at::kLong;
    case ElementType::i32: return at::kInt;
    case ElementType::i16: return at::kShort;
    case ElementType::i8: return at::kChar;
    case ElementType::u8: return at::kByte;
    case ElementType::boolean: return at::kBool;
  }
  return at::kFloat;
}

bool replace_prefix(std::string& text, std::string_view from, std::string_view to) {
  if (!text.starts_with(from)) return false;
  text.replace(0, from.size(), to);
  return true;
}

// timm's names outside the blocks, and inside one.
constexpr std::array<std::pair<const char*, const char*>, 5> timm_outer{
    {{"cls_token", "embeddings.cls_token"},
     {"dist_token", "embeddings.distillation_token"},
     {"pos_embed", "embeddings.position_embeddings"},
     {"patch_embed.proj.", "embeddings.patch_embeddings.projection."},
     {"norm.", "layernorm."}}};
constexpr std::array<std::pair<const char*, const char*>, 7> timm_inner{
    {{"norm1.", "layernorm_before."},
     {"norm2.", "layernorm_after."},
     {"ls1.gamma", "layer_scale1.lambda1"},
     {"ls2.gamma", "layer_scale2.lambda1"},
     {"attn.proj.", "attention.output.dense."},
     {"mlp.fc1.", "intermediate.dense."},
     {"mlp.fc2.", "output.dense."}}};

void add_timm_block(TensorMap& result, const std::string& name, const at::Tensor& tensor) {
  const auto dot = name.find('.', 7);
  const std::string layer = "encoder.layer." + name.substr(7, dot - 7) + ".";
  std::string inner = dot == std::string::npos ? std::string() : name.substr(dot + 1);
  if (replace_prefix(inner, "attn.qkv.", "")) {
    const std::int64_t rows = tensor.dim() > 0 ? tensor.size(0) / 3 : 0;
    constexpr std::array<const char*, 3> parts{"query.", "key.", "value."};
    for (std::size_t i = 0; i < 3 && tensor.dim() > 0; ++i)
      result[fmt::format("{}attention.attention.{}{}", layer, parts[i], inner)] =
          tensor.narrow(0, static_cast<std::int64_t>(i) * rows, rows);
    return;
  }
  for (const auto& [from, to] : timm_inner)
    if (replace_prefix(inner, from, to)) break;
  result[layer + inner] = tensor;
}

TensorMap from_timm(const TensorMap& tensors) {
  TensorMap result;
  const bool distilled = tensors.contains("head_dist.weight");
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("blocks.")) {
      add_timm_block(result, name, tensor);
      continue;
    }
    std::string outer = name;
    for (const auto& [from, to] : timm_outer)
      if (replace_prefix(outer, from, to)) break;
    replace_prefix(outer, "head_dist.", "distillation_classifier.");
    replace_prefix(outer, "head.", distilled ? "cls_classifier." : "classifier.");
    result[outer] = tensor;
  }
  return result;
}

// GPT-2's names inside a block become Llama's. Its Conv1D keeps (in,out), and one of them holds q, k and v.
constexpr std::array<std::pair<const char*, const char*>, 5> gpt2_inner{
    {{"ln_1.", "input_layernorm."},
     {"ln_2.", "post_attention_layernorm."},
     {"attn.c_proj.", "self_attn.o_proj."},
     {"mlp.c_fc.", "mlp.up_proj."},
     {"mlp.c_proj.", "mlp.down_proj."}}};
constexpr std::array<std::pair<const char*, const char*>, 4> gpt2_outer{
    {{"wte.", "embed_tokens."}, {"wpe.", "embed_positions."}, {"ln_f.", "norm."}, {"lm_head.", "lm_head."}}};

void add_gpt2_block(TensorMap& result, const std::string& name, const at::Tensor& tensor) {
  const auto dot = name.find('.', 2);
  const std::string layer = "encoder.layer." + name.substr(2, dot - 2) + ".";
  std::string inner = dot == std::string::npos ? std::string() : name.substr(dot + 1);
  const bool product = tensor.dim() == 2 && inner.ends_with(".weight");
  const at::Tensor turned = product ? tensor.t().contiguous() : tensor; // Linear::multiply_row reads rows
  if (replace_prefix(inner, "attn.c_attn.", "")) {
    const std::int64_t rows = turned.dim() > 0 ? turned.size(0) / 3 : 0;
    constexpr std::array<const char*, 3> parts{"q_proj.", "k_proj.", "v_proj."};
    for (std::size_t i = 0; i < 3 && turned.dim() > 0; ++i)
      result[fmt::format("{}self_attn.{}{}", layer, parts[i], inner)] =
          turned.narrow(0, static_cast<std::int64_t>(i) * rows, rows);
    return;
  }
  for (const auto& [from, to] : gpt2_inner)
    if (replace_prefix(inner, from, to)) break;
  result[layer + inner] = turned;
}

TensorMap from_gpt2(const TensorMap& tensors) {
  TensorMap result;
  for (const auto& [given, tensor] : tensors) {
    std::string name = given;
    replace_prefix(name, "transformer.", "");
    if (name.starts_with("h.")) {
      add_gpt2_block(result, name, tensor);
      continue;
    }
    for (const auto& [from, to] : gpt2_outer)
      if (replace_prefix(name, from, to)) break;
    result[name] = tensor;
  }
  return result;
}

TensorMap from_llama(const TensorMap& tensors) {
  TensorMap result;
  for (const auto& [given, tensor] : tensors) {
    std::string name = given;
    replace_prefix(name, "model.", "");
    replace_prefix(name, "layers.", "encoder.layer.");
    result[name] = tensor;
  }
  return result;
}

void add_file(Checkpoint& checkpoint, const fs::path& file) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  for (const auto& [name, view] : opened.tensors()) {
    if (checkpoint.tensors.contains(name))
      throw BrokenFile(file.string(), "holds '" + name + "' a second time", "fetch the model's files again");
    checkpoint.tensors.emplace(name, tensor_of(view, opened));
  }
  checkpoint.files.push_back(file);
  checkpoint.mappings.push_back(opened.mapping());
}

std::string how_to_complete(const fs::path& folder) {
  const std::string repository = repository_of_snapshot(folder);
  return repository.empty() ? "name a complete Hugging Face model folder"
                            : "get the rest with hydrascope fetch " + repository;
}

Checkpoint read_shards(const fs::path& index) {
  const ConfigFields fields = ConfigFields::of_file(index);
  const ConfigFields map = fields.object("weight_map");
  std::set<std::string> shards;
  for (const auto& [name, shard] : map.values().items()) {
    if (!shard.is_string()) fields.fail("weight_map", "names no file for '" + name + "'");
    const std::string file = shard.get<std::string>();
    if (!is_file_name(file)) fields.fail("weight_map", "names '" + file + "', which is not a file name");
    shards.insert(file);
  }
  if (shards.empty()) fields.fail("weight_map", "is missing or empty");
  Checkpoint checkpoint;
  for (const std::string& shard : shards) {
    const fs::path file = index.parent_path() / shard;
    if (!has_file(file)) throw Error(file.string(), "is missing", how_to_complete(index.parent_path()));
    add_file(checkpoint, file);
  }
  for (const auto& entry : map.values().items())
    if (!checkpoint.tensors.contains(entry.key()))
      throw BrokenFile(index.string(), "lists '" + entry.key() + "', which no shard holds",
                       "fetch the model's files again");
  return checkpoint;
}

} // namespace

at::Tensor tensor_of(const TensorView& view, const SafetensorsFile& file) {
  const auto options = at::TensorOptions().dtype(scalar_type(view.type));
  const auto address = reinterpret_cast<std::uintptr_t>(view.bytes.data());
  if (view.bytes.empty() || address % element_size(view.type) != 0) {
    const at::Tensor copy = at::empty(view.shape, options);
    if (!view.bytes.empty()) std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return copy;
  }
  // The pages are read-only: parameters must not be modified in place.
  return at::for_blob(const_cast<std::byte*>(view.bytes.data()), view.shape)
      .context(new Mapping(file.mapping()), unmap)
      .options(options)
      .make_tensor();
}

void require_files(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (tensor.has_storage() && tensor.storage().data_ptr().get_deleter() == unmap)
      (*static_cast<const Mapping*>(tensor.storage().data_ptr().get_context()))->require();
}

void release_pages(const at::Tensor& tensor) {
  if (tensor.storage().data_ptr().get_deleter() != unmap || !tensor.is_contiguous()) return;
  release_pages(std::span(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()));
}

std::string canonical_name(std::string_view name) {
  std::string result(name);
  for (const char* prefix : {"bert.", "vit.", "deit.", "dinov2."})
    if (replace_prefix(result, prefix, "")) break;
  constexpr std::string_view gamma = "LayerNorm.gamma";
  constexpr std::string_view beta = "LayerNorm.beta";
  if (result.ends_with(gamma)) result.replace(result.size() - 5, 5, "weight");
  if (result.ends_with(beta)) result.replace(result.size() - 4, 4, "bias");
  return result;
}

TensorMap canonical_tensors(const TensorMap& tensors) {
  if (tensors.contains("blocks.0.attn.qkv.weight")) return from_timm(tensors);
  for (const char* prefix : {"", "transformer."})
    if (tensors.contains(std::string(prefix) + "wte.weight")) return from_gpt2(tensors);
  for (const char* prefix : {"", "model."})
    if (tensors.contains(std::string(prefix) + "embed_tokens.weight")) return from_llama(tensors);
  TensorMap result;
  for (const auto& [name, tensor] : tensors) {
    const std::string canonical = canonical_name(name);
    // The published DINOv2 giant fuses SwiGLU's gate and up projection and calls the last one weights_out.
    const auto fused = canonical.find("mlp.weights_in.");
    const auto out = canonical.find("mlp.weights_out.");
    if (fused != std::string::npos && tensor.dim() > 0) {
      const std::int64_t half = tensor.size(0) / 2;
      std::string gate = canonical;
      std::string up = canonical;
      result[gate.replace(fused, 14, "mlp.gate_proj")] = tensor.narrow(0, 0, half);
      result[up.replace(fused, 14, "mlp.up_proj")] = tensor.narrow(0, half, half);
    } else if (out != std::string::npos) {
      std::string down = canonical;
      result[down.replace(out, 15, "mlp.down_proj")] = tensor;
    } else {
      result.emplace(canonical, tensor);
    }
  }
  return result;
}

Checkpoint read_checkpoint(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  Checkpoint checkpoint;
  if (has_file(single)) {
    add_file(checkpoint, single);
  } else if (has_file(index)) {
    checkpoint = read_shards(index);
  } else if (fs::exists(folder / "pytorch_model.bin")) {
    throw Error(folder.string(), "has only pytorch_model.bin, which is not read",
                "save the model as safetensors with transformers' save_pretrained");
  } else {
    throw Error(folder.string(), "has neither model.safetensors nor model.safetensors.index.json",
                how_to_complete(folder));
  }
  checkpoint.tensors = canonical_tensors(checkpoint.tensors);
  return checkpoint;
}

} // namespace hydrascope
