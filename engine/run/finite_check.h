// Whether a model's numbers are numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/models/transformer/model.h"

namespace hydrascope {

// Throws BrokenFile naming the parameter where the hidden states hold NaN or infinity because the weights do,
// Error where they do although all weights are finite.
void check_finite(const at::Tensor& hidden, const Model& model);

} // namespace hydrascope
