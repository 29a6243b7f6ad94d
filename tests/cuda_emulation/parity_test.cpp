// Every CUDA kernel, emulated, against its definition in double precision at the shapes of the test on a GPU
// (tests/engine/attention/cuda_test.cpp).
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/cuda_emulation/cases.h"

namespace hydrascope {
namespace {

using cuda::Element;
using namespace testing_inputs;

struct Precision {
  Element element;
  const char* name;
  double tolerance; // about three times what is measured
};

std::string describe(const CudaShape& shape) {
  return std::to_string(shape.batch) + " x " + std::to_string(shape.heads) + " x " +
         std::to_string(shape.tokens) + " x " + std::to_string(shape.width) +
         (shape.masked ? ", masked" : "");
}

// Collects the comparisons of a test and prints what was compared.
class Parity : public ::testing::Test {
protected:
  void expect(const Comparison& comparison, const Precision& precision) {
    EXPECT_EQ(comparison.message, "");
    EXPECT_LT(comparison.error, precision.tolerance);
    tensors_ += comparison.tensors;
    double& worst = worst_[static_cast<int>(precision.element)];
    worst = std::max(worst, comparison.error);
  }
  void TearDown() override {
    std::printf("%d tensors compared; worst relative errors: float32 %.2g, float16 %.2g, bfloat16 %.2g\n",
                tensors_, worst_[static_cast<int>(Element::float32)],
                worst_[static_cast<int>(Element::float16)], worst_[static_cast<int>(Element::bfloat16)]);
  }

private:
  int tensors_ = 0;
  double worst_[3] = {};
};

class CudaHydraEmulated : public Parity {};
class CudaLinearEmulated : public Parity {};

TEST_F(CudaHydraEmulated, OutputAndGradientsAreThoseOfTheDefinition) {
  for (const Precision& precision :
       {Precision{Element::float32, "float32", 1.2e-5}, Precision{Element::float16, "float16", 1.2e-3},
        Precision{Element::bfloat16, "bfloat16", 1e-2}})
    for (const auto shapes :
         {std::span<const CudaShape>(cuda_hydra_shapes), std::span<const CudaShape>(cuda_gradient_shapes)})
      for (const CudaShape& shape : shapes) {
        SCOPED_TRACE(describe(shape) + " " + precision.name);
        for (const bool causal : {false, true})
          for (const bool aligned : {false, true})
            if (aligned || shape.width != 64) // as models have them
              expect(compare_hydra(shape, precision.element, {.aligned = aligned, .causal = causal}),
                     precision);
      }
}

TEST_F(CudaLinearEmulated, OutputIsThatOfTheDefinition) {
  for (const Precision& precision :
       {Precision{Element::float32, "float32", 5e-6}, Precision{Element::float16, "float16", 2e-3},
        Precision{Element::bfloat16, "bfloat16", 1.5e-2}})
    for (const LinearKernel& kernel : linear_kernels()) {
      if (!kernel.in_parity) continue;
      if (!kernel.normalised && precision.element != Element::float32) continue; // not taken
      for (const CudaShape& shape : cuda_linear_shapes) {
        SCOPED_TRACE(std::string(kernel.name) + " " + describe(shape) + " " + precision.name);
        for (const bool aligned : {false, true})
          expect(compare_linear(kernel, shape, precision.element, {.aligned = aligned}), precision);
        const bool aligned = shape.width % 16 == 0; // each way at some of the shapes
        expect(compare_linear(kernel, shape, precision.element, {.aligned = aligned, .causal = true}),
               precision);
      }
    }
}

TEST_F(CudaLinearEmulated, GradientsAreThoseOfTheDefinition) {
  for (const Precision& precision :
       {Precision{Element::float32, "float32", 6e-6}, Precision{Element::bfloat16, "bfloat16", 5.5e-2}})
    for (const LinearKernel& kernel : linear_kernels()) {
      if (!kernel.in_parity) continue;
      if (!kernel.normalised && precision.element != Element::float32) continue; // not taken
      for (const CudaShape& shape : cuda_gradient_shapes) {
        SCOPED_TRACE(std::string(kernel.name) + " " + describe(shape) + " " + precision.name);
        for (const bool aligned : {false, true})
          expect(compare_linear_gradients(kernel, shape, precision.element, {.aligned = aligned}), precision);
        const bool aligned = shape.width % 16 == 0;
        expect(
            compare_linear_gradients(kernel, shape, precision.element, {.aligned = aligned, .causal = true}),
            precision);
      }
    }
}

} // namespace
} // namespace hydrascope
