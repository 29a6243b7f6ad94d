// What WeightsResult::check and `attend` compare, in words. Plain header.
#pragma once

#include <string>

#include "engine/attention/interface/kernel_info.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

// What is compared with the kernel's output: "weights × V", of a kernel with implied weights its matrices,
// one for each feature.
inline std::string checked_text(const KernelInfo& kernel) {
  return kernel.implied_weights ? "the D matrices φ(Q)_f φ(K)_fᵀ, one for each feature f, × V"
                                : "weights × V";
}

// What is shown and written as the weights of such a kernel, which is not compared; empty for other kernels.
inline std::string implied_weights_text(const KernelInfo& kernel) {
  if (!kernel.implied_weights) return "";
  return "the sum of these matrices over each head's features; it is not checked, and times V it is not the "
         "output";
}

// Whether the difference is larger than the error of the arithmetic.
inline bool differs_from_output(const WeightsResult& weights) {
  constexpr double tolerance = 1e-3;
  return weights.check > tolerance + weights.rounding;
}

} // namespace hydrascope::app
