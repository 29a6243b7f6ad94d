// Numbers of the tensors in safetensors files, read without LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/safetensors.h"

namespace hydrascope {

// "(1,12,197,64)".
std::string shape_text(const TensorView& view);

bool is_floating(ElementType type);
// As many numbers as there is place for, from `index` on.
void read_numbers(const TensorView& view, std::size_t index, std::span<double> numbers);
// Whether all numbers of a floating-point type are finite.
bool all_finite(ElementType type, std::span<const std::byte> bytes);

} // namespace hydrascope
