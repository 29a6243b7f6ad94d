// Fused kernels that fail as CUDA's do.
#pragma once

#include <string>
#include <utility>

#include <c10/util/Exception.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/attention/interface/device.h"
#include "tests/support/fake_device.h"

namespace hydrascope::testing_inputs {

// hydra-cosine fails on the fake device for as long as the object exists, by default as CUDA does after a
// kernel that has read memory outside its own; other kernels are composed.
class BrokenKernels {
public:
  explicit BrokenKernels(
      std::string message = "CUDA error: an illegal memory access was encountered\nand what may help") {
    message_ = std::move(message);
    plugin_.runs_on = [](at::DeviceIndex) { return true; };
    plugin_.hydra_cosine = [](const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                              bool) -> at::Tensor { C10_THROW_ERROR(Error, message_); };
    plugin_.linear_takes = [](cpu::PointMap, bool, at::ScalarType, std::int64_t, std::int64_t, bool,
                              at::DeviceIndex) { return false; };
    plugin_.linear_gradients_take = plugin_.linear_takes;
    set_fused_kernels(test::fake_device().type(), &plugin_);
  }
  ~BrokenKernels() { set_fused_kernels(c10::kCPU, nullptr); }
  BrokenKernels(const BrokenKernels&) = delete;
  BrokenKernels& operator=(const BrokenKernels&) = delete;

private:
  static inline std::string message_; // the plug-in's functions are plain pointers
  HydrascopeCudaPlugin plugin_{};
};

} // namespace hydrascope::testing_inputs
