// The programs that the GPU's blocks run for hydra-cosine, run on the host thread by thread, against the
// definition in double precision and LibTorch's gradients of it. Cuda.* runs the launches where there is a
// GPU.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "engine/attention/hydra/cuda/hydra_programs.h"
#include "tests/engine/attention/cuda_host.h"
#include "tests/engine/attention/inputs.h"

namespace hydrascope {
namespace {

struct Read {
  const float* data;
  std::int64_t tokens, width;
  explicit Read(const at::Tensor& x) : data(x.const_data_ptr<float>()), tokens(x.size(1)), width(x.size(2)) {}
  float operator()(const std::int64_t b, const std::int64_t t, const std::int64_t f) const {
    return data[(b * tokens + t) * width + f];
  }
};
struct Write {
  float* data;
  std::int64_t tokens, width;
  explicit Write(const at::Tensor& x) : data(x.data_ptr<float>()), tokens(x.size(1)), width(x.size(2)) {}
  void operator()(const std::int64_t b, const std::int64_t t, const std::int64_t f, const float value) const {
    data[(b * tokens + t) * width + f] = value;
  }
};

// The grids of hydra.cu.
struct HostGrid {
  cuda::HydraShape shape = {};
  testing_inputs::HostBlock block = {};
  static constexpr int parts = 3;

  at::Tensor filled(const std::int64_t count) const { return at::full({count}, NAN, at::kFloat); }
  template <typename Program>
  void over_rows(const Program& program) const {
    for (std::int64_t index = 0; index * cuda::rows_of_block < shape.batch * shape.tokens; ++index)
      program(index);
  }
  at::Tensor norms(const at::Tensor& x) {
    const at::Tensor inverse = filled(shape.batch * shape.tokens);
    over_rows([&](auto index) { inverse_norms(block, shape, index, Read(x), inverse.data_ptr<float>()); });
    return inverse;
  }
  at::Tensor sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& inverse) {
    const at::Tensor partial = filled(shape.batch * parts * shape.width),
                     sums = filled(shape.batch * shape.width);
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t index = 0; index * cuda::block_threads < shape.width; ++index) {
        for (int part = 0; part < parts; ++part)
          partial_sums(block, shape, index, part, parts, b, Read(x), Read(y), inverse.const_data_ptr<float>(),
                       partial.data_ptr<float>());
        add_parts(block, shape, index, parts, b, partial.const_data_ptr<float>(), sums.data_ptr<float>());
      }
    return sums;
  }
  at::Tensor gated(const at::Tensor& x, const at::Tensor& inverse, const at::Tensor& sums) {
    const at::Tensor out = at::full(x.sizes(), NAN, at::kFloat);
    over_rows([&](auto index) {
      gate(block, shape, index, Read(x), inverse.const_data_ptr<float>(), sums.const_data_ptr<float>(),
           Write(out));
    });
    return out;
  }
  at::Tensor by_rows(const at::Tensor& x, const at::Tensor& y, const at::Tensor& inverse,
                     const at::Tensor& sums) {
    const at::Tensor out = at::full(x.sizes(), NAN, at::kFloat);
    over_rows([&](auto index) {
      through_norm(block, shape, index, Read(x), Read(y), inverse.const_data_ptr<float>(),
                   sums.const_data_ptr<float>(), Write(out));
    });
    return out;
  }
};

void expect_near(const at::Tensor& result, const at::Tensor& expected, const char* name) {
  const double difference = (result - expected).abs().max().item<double>();
  EXPECT_LE(difference, 2e-5 * expected.abs().max().item<double>() + 1e-6) << name; // NaN is not below it
}

void compare(const std::int64_t tokens, const std::int64_t width, const bool masked) {
  SCOPED_TRACE(std::to_string(tokens) + " tokens of " + std::to_string(width) + (masked ? ", masked" : ""));
  constexpr std::int64_t batch = 2;
  std::vector<at::Tensor> x, leaves; // q, k, v, g
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    x.push_back(testing_inputs::normal({batch, tokens, width}, seed));
    leaves.push_back(x.back().to(at::kDouble).detach().requires_grad_());
  }
  at::Tensor real = at::full({batch, tokens}, true, at::kBool);
  if (masked)
    for (std::int64_t token = 0; token < tokens; token += 3) real.select(1, token).fill_(false);
  const at::Tensor rows = real.unsqueeze(-1);
  const auto unit = [](const at::Tensor& y) {
    return y / at::linalg_vector_norm(y, 2, at::IntArrayRef({-1}), true);
  };
  const at::Tensor expected = unit(leaves[0]) * (unit(leaves[1]) * leaves[2] * rows).sum(1, true) * rows;
  (expected * leaves[3]).sum().backward();

  if (masked)
    for (at::Tensor& one : x) one.masked_fill_(rows.logical_not(), NAN);
  const at::Tensor &q = x[0], &k = x[1], &v = x[2], &g = x[3];
  HostGrid grid{
      {masked ? static_cast<const unsigned char*>(real.const_data_ptr()) : nullptr, batch, tokens, width}};
  const at::Tensor inverse_q = grid.norms(q), inverse_k = grid.norms(k);
  const at::Tensor of_keys = grid.sums(k, v, inverse_k), of_queries = grid.sums(q, g, inverse_q);
  expect_near(grid.gated(q, inverse_q, of_keys), expected, "out");
  expect_near(grid.by_rows(q, g, inverse_q, of_keys), leaves[0].grad(), "by q");
  expect_near(grid.by_rows(k, v, inverse_k, of_queries), leaves[1].grad(), "by k");
  expect_near(grid.gated(k, inverse_k, of_queries), leaves[2].grad(), "by v");
}

TEST(CudaHydraPrograms, AreTheDefinitionAndItsGradients) {
  for (const bool masked : {false, true}) {
    compare(masked ? 2 : 1, 1, masked);
    compare(33, 7, masked);
    compare(70, 300, masked);
  }
}

} // namespace
} // namespace hydrascope
