// The fused CUDA kernels against the composed ones on the CPU. Without a GPU these tests say so and are
// skipped.
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "tests/engine/attention/cuda_shapes.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

using testing_inputs::Case, testing_inputs::describe, testing_inputs::make_input,
    testing_inputs::relative_error;

// Each shape, causal and not.
template <std::size_t count>
std::vector<Case> cases_of(const testing_inputs::CudaShape (&shapes)[count]) {
  std::vector<Case> cases;
  for (const auto& shape : shapes)
    for (const bool causal : {false, true})
      cases.push_back({shape.batch, shape.heads, shape.tokens, shape.width, shape.masked, causal});
  return cases;
}

AttentionInput on_gpu(const AttentionInput& host) {
  AttentionInput device = host;
  for (at::Tensor* x : {&device.q, &device.k, &device.v, &device.layer_input, &device.mask})
    if (x->defined()) *x = x->to(at::kCUDA);
  return device;
}

TEST(Cuda, StatusHasAReasonWhereItIsNotAvailable) {
  const CudaStatus& status = cuda_status();
  EXPECT_EQ(status.available, status.reason.empty());
  EXPECT_EQ(status.fused_kernels, status.fused_kernels_reason.empty());
  EXPECT_EQ(status.fused_kernels, cuda_plugin() != nullptr);
}

TEST(Cuda, FusedHydraCosineIsTheComposedOne) {
  if (!cuda_status().available) GTEST_SKIP() << "no CUDA: " << cuda_status().reason;
  if (!cuda_status().fused_kernels)
    GTEST_SKIP() << "no fused kernels: " << cuda_status().fused_kernels_reason;
  const auto kernel = make_kernel({"hydra-cosine", {}});
  for (const Case& shape : cases_of(testing_inputs::cuda_hydra_shapes)) {
    for (const auto& [type, tolerance] :
         {std::pair{at::kFloat, 1e-5}, std::pair{at::kBFloat16, 1.5e-2}, std::pair{at::kHalf, 2e-3}}) {
      SCOPED_TRACE(describe(shape) + " " + toString(type));
      AttentionInput host = make_input(shape, 3);
      for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(type);
      const AttentionOutput fused = kernel->run(on_gpu(host), {});
      EXPECT_EQ(fused.path, "fused cuda");
      EXPECT_LT(relative_error(fused.out.cpu(), kernel->run(host, {}).out), tolerance);
    }
  }
}

TEST(Cuda, FusedLinearAttentionIsThatOfTheCpu) {
  if (!cuda_status().available) GTEST_SKIP() << "no CUDA: " << cuda_status().reason;
  if (!cuda_status().fused_kernels)
    GTEST_SKIP() << "no fused kernels: " << cuda_status().fused_kernels_reason;
  for (const char* name : {"hedgehog", "hedgehog-softmax", "t2r", "elu", "relu", "exp-t2", "cosformer",
                           "performer:features=64", "linear-cosine"})
    for (const Case& shape : cases_of(testing_inputs::cuda_linear_shapes))
      for (const auto& [type, tolerance] :
           {std::pair{at::kFloat, 2e-5}, std::pair{at::kBFloat16, 2e-2}, std::pair{at::kHalf, 4e-3}}) {
        SCOPED_TRACE(std::string(name) + " " + describe(shape) + " " + toString(type));
        const auto kernel = make_kernel(parse_kernel_list(name).front());
        AttentionInput host = make_input(shape, 3);
        for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(type);
        const AttentionInput device = on_gpu(host);
        const bool signed_half = std::string(name) == "linear-cosine" && type != at::kFloat;
        const Path composed = shape.causal ? Path::at_once : Path::in_blocks;
        EXPECT_EQ(kernel->plan(shape_of(device)).path, signed_half ? composed : Path::fused_cuda);
        for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(at::kFloat); // the same numbers
        EXPECT_LT(relative_error(kernel->run(device, {}).out.cpu(), kernel->run(host, {}).out), tolerance);
      }
}

// The loss by q, k, v of a fixed sum of the output, by the fused kernels and by LibTorch through the composed
// ones.
TEST(Cuda, FusedGradientsAreThoseOfTheCpu) {
  if (!cuda_status().available) GTEST_SKIP() << "no CUDA: " << cuda_status().reason;
  if (!cuda_status().fused_kernels)
    GTEST_SKIP() << "no fused kernels: " << cuda_status().fused_kernels_reason;
  for (const char* name : {"hydra-cosine", "hedgehog", "hedgehog-softmax", "t2r", "elu", "relu", "exp-t2",
                           "cosformer", "performer:features=64", "linear-cosine"})
    for (const Case& shape : cases_of(testing_inputs::cuda_gradient_shapes))
      for (const auto& [type, tolerance] : {std::pair{at::kFloat, 5e-5}, std::pair{at::kBFloat16, 4e-2}}) {
        SCOPED_TRACE(std::string(name) + " " + describe(shape) + " " + toString(type));
        if (std::string(name) == "linear-cosine" && type != at::kFloat) continue; // composed
        const auto kernel = make_kernel(parse_kernel_list(name).front());
        AttentionInput host = make_input(shape, 3);
        for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(type);
        AttentionInput device = on_gpu(host);
        for (at::Tensor* x : {&host.q, &host.k, &host.v}) *x = x->to(at::kFloat).requires_grad_();
        for (at::Tensor* x : {&device.q, &device.k, &device.v}) *x = x->detach().requires_grad_();
        const at::Tensor g = testing_inputs::normal(host.v.sizes(), 5).to(type);
        (kernel->run(host, {}).out * g.to(at::kFloat)).sum().backward();
        const AttentionOutput fused = kernel->run(device, {});
        EXPECT_EQ(fused.path, "fused cuda");
        (fused.out * g.to(at::kCUDA)).sum().backward();
        const at::Tensor expected[] = {host.q.grad(), host.k.grad(), host.v.grad()};
        const at::Tensor results[] = {device.q.grad(), device.k.grad(), device.v.grad()};
        for (int i = 0; i < 3; ++i)
          EXPECT_LT(relative_error(results[i].cpu().to(at::kFloat), expected[i]), tolerance) << "qkv"[i];
      }
}

TEST(Cuda, EveryKernelRunsOnTheGpu) {
  if (!cuda_status().available) GTEST_SKIP() << "no CUDA: " << cuda_status().reason;
  for (const KernelInfo& info : kernel_infos()) {
    const auto kernel = make_kernel({info.name, {}});
    for (const Case& shape : {Case{2, 2, 65, 32, true}, Case{1, 2, 65, 32, false, true}}) {
      SCOPED_TRACE(info.name + " " + describe(shape));
      const AttentionInput host = make_input(shape, 3), device = on_gpu(host);
      if (!kernel->supports(shape_of(device)).ok) continue;
      EXPECT_LT(relative_error(kernel->run(device, {}).out.cpu(), kernel->run(host, {}).out), 1e-4);
      EXPECT_LT(relative_error(kernel->weights(device, {}).cpu(), kernel->weights(host, {})), 1e-4);
    }
  }
}

} // namespace
} // namespace hydrascope
