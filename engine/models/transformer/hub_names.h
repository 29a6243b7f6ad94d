// A model's tensors under the names of Hugging Face's files: the inverse of canonical_tensors().
#pragma once

#include <string>

#include "engine/models/transformer/checkpoint.h"

namespace hydrascope {

// `family` as ModelInfo::family. GPT-2's projections are transposed, and its q, k and v are one. Throws Error
// for a family that transformers does not know.
TensorMap hub_tensors(const std::string& family, const TensorMap& canonical);

} // namespace hydrascope
