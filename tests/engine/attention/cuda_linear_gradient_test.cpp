// The gradients that the GPU's blocks compute for linear attention, run on the host thread by thread, against
// LibTorch's own through the definition in double precision.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include "tests/engine/attention/cuda_linear_grid.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

using cpu::PointMap;

struct Case {
  std::int64_t tokens;
  int width, outputs;
};

constexpr std::int64_t batch = 2, heads = 2;

// φ of y (B,H,N,m), turns (B,N,2).
at::Tensor features(const PointMap map, const at::Tensor& y, const at::Tensor& token_weights) {
  switch (map) {
    case PointMap::plus_minus_exponential: return at::cat({y.exp(), (-y).exp()}, -1);
    case PointMap::exponential: return y.exp();
    case PointMap::softmax: return at::softmax(y, -1);
    case PointMap::plus_minus_softmax: return at::cat({at::softmax(y, -1), at::softmax(-y, -1)}, -1);
    case PointMap::joint_softmax: return at::softmax(at::cat({y, -y}, -1), -1);
    case PointMap::one_plus_elu: return 1 + at::elu(y);
    case PointMap::relu: return at::relu(y);
    case PointMap::unit: return y / at::linalg_vector_norm(y, 2, at::IntArrayRef({-1}), true);
    case PointMap::relu_token_weighted: {
      const at::Tensor of_head = token_weights.unsqueeze(1);
      return at::cat({at::relu(y) * of_head.narrow(3, 0, 1), at::relu(y) * of_head.narrow(3, 1, 1)}, -1);
    }
    case PointMap::taylor: break;
  }
  return {};
}

void compare(const Case& one, const PointMap point, const bool masked) {
  SCOPED_TRACE(std::to_string(one.tokens) + " tokens, " + std::to_string(one.outputs) + " and " +
               std::to_string(one.width) + " entries, map " + std::to_string(static_cast<int>(point)) +
               (masked ? ", masked" : ""));
  const auto drawn = [&](const int width, const std::uint64_t seed) {
    return testing_inputs::normal({batch, one.tokens, heads, width}, seed);
  };
  at::Tensor q = drawn(one.outputs, 1), k = drawn(one.outputs, 2), v = drawn(one.width, 3),
             g = drawn(one.width, 4);
  const at::Tensor token_weights = testing_inputs::normal({batch, one.tokens, 2}, 5).abs();
  at::Tensor real = at::full({batch, one.tokens}, true, at::kBool);
  if (masked)
    for (std::int64_t token = 0; token < one.tokens; token += 3) real.select(1, token).fill_(false);
  const bool normalised = point != PointMap::unit;

  // By the definition: (φ(q) φ(k)ᵀ ⊙ mask) v over the sum of the row.
  std::vector<at::Tensor> leaves;
  for (const at::Tensor* x : {&q, &k, &v})
    leaves.push_back(x->transpose(1, 2).to(at::kDouble).detach().requires_grad_());
  const at::Tensor exact_turns = token_weights.to(at::kDouble);
  const at::Tensor products = at::matmul(features(point, leaves[0], exact_turns),
                                         features(point, leaves[1], exact_turns).transpose(2, 3)) *
                              real.unsqueeze(1).unsqueeze(1);
  at::Tensor weights = products;
  if (normalised) {
    const at::Tensor total = products.sum(-1, true);
    weights = products / total.masked_fill(total == 0, 1);
  }
  const at::Tensor out = at::matmul(weights, leaves[2]) * real.unsqueeze(1).unsqueeze(-1);
  (out * g.transpose(1, 2).to(at::kDouble)).sum().backward();

  // What is masked is not to be read.
  if (masked)
    for (at::Tensor* x : {&q, &k, &v, &g})
      x->masked_fill_(real.logical_not().unsqueeze(-1).unsqueeze(-1), NAN);
  const auto on_device = [&](const at::Tensor& x) {
    return cuda::HeadsOnDevice{x.const_data_ptr(), x.stride(0), x.stride(2), x.stride(1)};
  };
  cuda::SideArguments side{};
  side.token_weights = token_weights.const_data_ptr<float>();
  side.token_weights_stride = token_weights.stride(0);
  side.scale = 1;
  cuda::LinearArguments arguments{};
  arguments.map = point;
  arguments.normalised = normalised;
  arguments.q = on_device(q);
  arguments.k = on_device(k);
  arguments.v = on_device(v);
  arguments.query = arguments.key = side;
  arguments.mask = masked ? static_cast<const unsigned char*>(real.const_data_ptr()) : nullptr;
  arguments.batch = batch;
  arguments.heads = heads;
  arguments.tokens = one.tokens;
  arguments.head_width = one.width;
  arguments.inputs = arguments.outputs = one.outputs;
  arguments.features = cuda::features_of(point, one.outputs);
  const at::Tensor workspace =
      at::full({cuda::counter_floats + batch * heads * head_space_floats(arguments)}, NAN, at::kFloat);
  arguments.workspace = workspace.data_ptr<float>();
  const at::Tensor dq = at::full(q.sizes(), NAN, at::kFloat), dk = at::full(k.sizes(), NAN, at::kFloat),
                   dv = at::full(v.sizes(), NAN, at::kFloat);
  testing_inputs::CudaLinearGrid(arguments).run({on_device(g), dq.data_ptr(), dk.data_ptr(), dv.data_ptr()});

  const at::Tensor results[] = {dq, dk, dv};
  const char* const names[] = {"q", "k", "v"};
  for (int i = 0; i < 3; ++i) {
    const at::Tensor expected = leaves[static_cast<std::size_t>(i)].grad();
    const at::Tensor difference = (results[i].transpose(1, 2) - expected).abs();
    EXPECT_LE(difference.max().item<double>(), 2e-5 * expected.abs().max().item<double>() + 1e-6) << names[i];
  }
}

TEST(CudaLinearGradients, AreThoseOfTheDefinition) {
  for (const Case& one : {Case{1, 1, 1}, Case{33, 8, 8}, Case{300, 20, 20}, Case{70, 16, 7}, Case{40, 64, 64},
                          Case{37, 128, 128}, Case{35, 24, 40}, Case{50, 64, 16}})
    for (const PointMap point :
         {PointMap::plus_minus_exponential, PointMap::exponential, PointMap::softmax,
          PointMap::plus_minus_softmax, PointMap::joint_softmax, PointMap::one_plus_elu, PointMap::relu,
          PointMap::unit, PointMap::relu_token_weighted})
      for (const bool masked : {false, true}) compare(one, point, masked);
}

} // namespace
} // namespace hydrascope
