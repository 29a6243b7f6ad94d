// Small pieces of every kernel's cost().
#pragma once

#include "engine/attention/interface/kernel.h"

namespace hydrascope {

// D = H·d.
inline double model_width(const AttentionShape& shape) {
  return static_cast<double>(shape.heads) * static_cast<double>(shape.head_width);
}

// q, k, v read once and the output written once.
inline double bytes_moved(const AttentionShape& shape) {
  return 4.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.tokens) * model_width(shape) *
         static_cast<double>(c10::elementSize(shape.dtype));
}

} // namespace hydrascope
