#include "engine/run/placement.h"

#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "engine/attention/interface/device.h"

// MKL's mkl_free_buffers(), which LibTorch contains without its header; null in a LibTorch without MKL.
extern "C" [[gnu::weak]] void mkl_serv_free_buffers();

namespace hydrascope {

std::string Placement::dtype_name() const {
  switch (dtype) {
    case c10::kBFloat16: return "bfloat16";
    case c10::kHalf: return "float16";
    default: return "float32";
  }
}

Placement placement_of(const ExecutionOptions& execution) {
  const c10::Device device = device_of(execution.device);
  return {device, dtype_on(device, execution.dtype)};
}

void release_cached_memory(const c10::Device device) {
  if (!device.is_cpu())
    c10::getDeviceAllocator(device.type())->emptyCache();
  else if (mkl_serv_free_buffers != nullptr)
    mkl_serv_free_buffers();
}

ModelInput placed(const Model& model, ModelInput input) {
  const at::Device device = model.device();
  if (device.is_cpu()) return input;
  model.check(input);
  if (input.mask.defined() && input.mask.all().item<bool>()) input.mask = at::Tensor();
  for (at::Tensor* const part :
       {&input.pixels, &input.token_ids, &input.token_types, &input.mask, &input.positions, &input.read})
    if (part->defined()) *part = part->to(device);
  return input;
}

} // namespace hydrascope
