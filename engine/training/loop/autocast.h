// Training with matrix products in bfloat16 or float16, as torch.autocast: parameters, norms and losses stay
// float32.
#pragma once

#include <string_view>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "engine/run/placement.h"
#include "engine/training/loop/optimizer.h"

namespace hydrascope::training {

// Whether the device multiplies bfloat16 natively: a CPU with AVX512-BF16, about three times as fast as
// float32, unless HYDRASCOPE_PROCESSOR names an older kind; or a GPU that the CUDA plug-in runs on (compute
// capability 8.0 or later).
bool has_fast_bfloat16(c10::Device device);

// The type of the matrix products for a dtype as on the command line; "auto": bfloat16 where it is fast, else
// float32. Throws UsageError for a type that the device does not train in: float16 needs a GPU.
at::ScalarType product_type(std::string_view dtype, c10::Device device);

// Whether a model is run there under autocast, so that parameters, norms and the residual stream stay
// float32: on the CPU in bfloat16. Elsewhere the model itself has the type.
bool autocasts(const Placement& placement);

// The blocks' matrices among these parameters, in this type; none for float32. Their products are then not
// done by the packed float32 path, but by autocast, which need not convert the matrix each time; norms and
// the residual stream stay float32.
NamedTensors matrices_in(at::ScalarType type, const NamedTensors& parameters);

// Enables autocast to this type on this thread for the lifetime of the object; float32: does nothing.
class Autocast {
public:
  Autocast(c10::Device device, at::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

private:
  c10::DeviceType device_;
  bool enabled_;
  bool before_;
  at::ScalarType type_before_;
};

} // namespace hydrascope::training
