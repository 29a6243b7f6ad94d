// The kernels on the emulation against their definition (definition.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/attention/cuda/program.h"
#include "engine/attention/simd/loop_types.h"
#include "tests/engine/attention/cuda_shapes.h"

namespace hydrascope::testing_inputs {

// What a kernel of the program asks of the CUDA kernels.
struct LinearKernel {
  enum class Projection { none, near_identity, random, shared }; // per head, or one for all heads
  const char* name = "";
  cpu::PointMap map = cpu::PointMap::relu;
  Projection projection = Projection::none;
  std::int64_t outputs = 0; // m; 0: d
  double scale = 1;
  bool half_square = false; // performer's ‖x‖²/(2√d)
  bool normalised = true;
  bool in_parity = true; // compared at all shapes; else at small ones
};
std::span<const LinearKernel> linear_kernels();

struct Comparison {
  double error = 0; // the worst relative error of the tensors compared
  int tensors = 0;
  std::string message = ""; // CUDA's, or what else is wrong
};
struct Variation {
  // One entry of the second token's key; results must be NaN exactly where the definition's are.
  bool nan_in_key = false;
  bool float_inputs = false; // q and k are float32 beside values of bfloat16
  bool aligned = false;      // tokens begin at multiples of 16 bytes
  bool shifted = false;      // and one element behind these
  bool causal = false;
};
Comparison compare_linear(const LinearKernel& kernel, const CudaShape& shape, cuda::Element element,
                          const Variation& variation = {});
// On y: without the kernel's projection.
Comparison compare_linear_gradients(const LinearKernel& kernel, const CudaShape& shape, cuda::Element element,
                                    const Variation& variation = {});
// Output and gradients.
Comparison compare_hydra(const CudaShape& shape, cuda::Element element, const Variation& variation = {});

} // namespace hydrascope::testing_inputs
