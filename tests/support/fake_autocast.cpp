// Autocast on the fake device, by CUDA's lists: which operators compute in the lower type and which in
// float32.
#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// LibTorch's macros are written for its own namespace.
namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

#define HYDRASCOPE_IN_LOWER_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define HYDRASCOPE_IN_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define HYDRASCOPE_TO_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define HYDRASCOPE_IN_WIDEST_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(HYDRASCOPE_IN_LOWER_TYPE)
  AT_FORALL_FP32(HYDRASCOPE_IN_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(HYDRASCOPE_TO_FLOAT)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(HYDRASCOPE_IN_WIDEST_TYPE)
}

} // namespace
} // namespace at::autocast
