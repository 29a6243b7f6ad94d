// Training with matrix products in bfloat16 on the CPU, as torch.autocast: parameters, norms and losses stay
// float32.
#pragma once

#include <string_view>

#include "engine/training/loop/optimizer.h"

namespace hydrascope::training {

// Whether the CPU multiplies bfloat16 natively (AVX512-BF16), about three times as fast as float32.
bool has_fast_bfloat16();

// "float32" → false, "bfloat16" → true, "auto" → has_fast_bfloat16(). Throws UsageError for anything else.
bool use_bfloat16(std::string_view dtype);

// The blocks' matrices among these parameters, in bfloat16. Their products are then not done by the packed
// float32 path, but by autocast in bfloat16, which need not convert the matrix each time; norms and the
// residual stream stay float32.
NamedTensors bfloat16_matrices(const NamedTensors& parameters);

// Enables autocast to bfloat16 on this thread for the lifetime of the object.
class Autocast {
public:
  explicit Autocast(bool enabled);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

private:
  bool enabled_;
  bool before_;
};

} // namespace hydrascope::training
