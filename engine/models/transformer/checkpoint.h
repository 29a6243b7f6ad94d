// A checkpoint's tensors under canonical names: Hugging Face's, without the model's prefix.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/base/safetensors.h"

namespace hydrascope {

using TensorMap = std::map<std::string, at::Tensor>;

struct Checkpoint {
  TensorMap tensors;                        // views of the mapped files, in the files' own element types
  std::vector<std::filesystem::path> files; // model.safetensors, or the shards in order
  std::vector<std::shared_ptr<const FileMapping>> mappings; // of the files
};

// A tensor over the bytes of an open file, which keeps the mapping alive; a copy where the bytes are not
// aligned.
at::Tensor tensor_of(const TensorView& view, const SafetensorsFile& file);

// Throws Error if the file of a tensor_of() among these could not be read to its end.
void require_files(const TensorMap& tensors);

// Frees the memory of a tensor_of(): the next access reads its file again. Does nothing to other tensors.
void release_pages(const at::Tensor& tensor);

// `bert.encoder.…`, `….LayerNorm.gamma` → `encoder.…`, `….LayerNorm.weight`.
std::string canonical_name(std::string_view name);

// All tensors under canonical names; timm's names, with the fused qkv projection, become Hugging Face's,
// those of GPT-2, with the transposed projections, become Llama's.
TensorMap canonical_tensors(const TensorMap& tensors);

// Reads model.safetensors, or the shards that model.safetensors.index.json lists. Throws Error (missing),
// ForeignFile, BrokenFile.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

} // namespace hydrascope
