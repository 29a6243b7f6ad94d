// Low-rank updates in place of a weight's own (LoRA; Hu et al. 2022, section 4.1): W + (α / r)·B·A with A
// (r,in) and B (out,r). W stays as it is; B starts at zero, so that training starts from the model unchanged.
#pragma once

#include "engine/models/transformer/model.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training.h"

namespace hydrascope::training {

// Adds both factors of a weight (out,in) as leaves, named WEIGHT.lora_A and WEIGHT.lora_B. A is uniform in
// ±1/√in, as the authors' program draws it, by `key` alone.
void add_factors(NamedTensors& leaves, const std::string& weight, const at::Tensor& value,
                 const LowRank& update, std::uint64_t key);

// With every pair of factors as the weight that it makes of the model's, float32; all else as it is.
NamedTensors with_updates(const Model& model, const NamedTensors& parameters, const LowRank& update);

} // namespace hydrascope::training
