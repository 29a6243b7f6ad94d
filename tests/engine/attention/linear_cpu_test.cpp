// The fused path of normalised linear attention against the composed one (the loops it runs:
// linear_loops_test.cpp).
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "engine/attention/interface/kernel.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

using testing_inputs::Case, testing_inputs::describe, testing_inputs::make_input,
    testing_inputs::moved_parameters, testing_inputs::relative_error;

TEST(LinearCpu, RunsAndAgreesWithTheComposedPath) {
  int fused_kernels = 0;
  for (const KernelInfo& info : kernel_infos()) {
    const bool quadratic = info.family == KernelFamily::exact || info.family == KernelFamily::window;
    if (quadratic || info.implied_weights) continue; // Hydra has loops of its own
    const auto kernel = make_kernel({info.name, {}});
    for (const Case& shape : {Case{1, 1, 1, 1}, Case{2, 3, 65, 24, true}, Case{2, 2, 4100, 32, true}}) {
      SCOPED_TRACE(info.name + " " + describe(shape));
      AttentionInput input = make_input(shape, 3);
      if (shape.tokens > 1000) // a token's heads side by side, as models have them
        for (at::Tensor* x : {&input.q, &input.k, &input.v})
          *x = x->transpose(1, 2).contiguous().transpose(1, 2);
      if (kernel->plan(shape_of(input)).path != Path::fused_cpu) continue;
      ++fused_kernels;
      AttentionInput exact = input; // in double precision there is the composed path alone
      for (at::Tensor* x : {&exact.q, &exact.k, &exact.v}) *x = x->to(at::kDouble);
      const KernelParameters parameters = moved_parameters(*kernel, shape, 5);
      const AttentionOutput fused = kernel->run(input, parameters), composed = kernel->run(exact, parameters);
      EXPECT_EQ(fused.path, "fused cpu");
      EXPECT_EQ(composed.path, "composed");
      EXPECT_EQ(fused.zero_denominators.read(), composed.zero_denominators.read());
      EXPECT_LT(relative_error(fused.out.to(at::kDouble), composed.out), 7e-6); // measured: 2.3e-6

      AttentionInput half = input;
      for (at::Tensor* x : {&half.q, &half.k, &half.v}) *x = x->to(at::kBFloat16);
      const AttentionOutput rounded = kernel->run(half, parameters);
      EXPECT_EQ(rounded.out.scalar_type(), at::kBFloat16);
      // Measured with bfloat16 products: 0.024 of exp-t2, whose exponents are twice as large, else 0.0174.
      EXPECT_LT(relative_error(rounded.out.to(at::kDouble), composed.out),
                info.name == "exp-t2" ? 0.072 : 0.052);
    }
  }
  EXPECT_GE(fused_kernels, 3 * 13);
}

} // namespace
} // namespace hydrascope
