// What a user's feature map may return.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "engine/attention/own/map_source.h"

namespace hydrascope {

// Throws SourceError unless y, computed from x, are floating-point numbers on x's device.
void check_kind(const MapSource& source, const at::Tensor& y, const at::Tensor& x);
// On the CPU: throws SourceError, with the line at fault, unless y, computed from x, is finite where x is and
// has no negative entry that is not allowed. `again` computes it once more.
void check_values(const MapSource& source, const at::Tensor& y, const at::Tensor& x,
                  const std::function<void()>& again);

} // namespace hydrascope
