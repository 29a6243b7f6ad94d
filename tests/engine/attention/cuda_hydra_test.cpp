// The programs that the GPU's blocks run for hydra-cosine, run on the host thread by thread, against the
// definition in double precision and LibTorch's gradients of it. Cuda.* runs the launches where there is a
// GPU.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
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

template <int elements>
struct Read {
  static constexpr int count = elements;
  using Piece = cuda::Piece<float, elements>;
  const float* data;
  std::int64_t tokens, width;
  explicit Read(const at::Tensor& x) : data(x.const_data_ptr<float>()), tokens(x.size(1)), width(x.size(2)) {}
  Piece operator()(const std::int64_t b, const std::int64_t t, const int f) const {
    Piece piece{};
    std::copy_n(data + (b * tokens + t) * width + f, elements, piece.at);
    return piece;
  }
  static float number(const Piece& piece, const int i) { return piece.at[i]; }
};
template <int elements>
struct Write {
  float* data;
  std::int64_t tokens, width;
  explicit Write(const at::Tensor& x) : data(x.data_ptr<float>()), tokens(x.size(1)), width(x.size(2)) {}
  void operator()(const std::int64_t b, const std::int64_t t, const int f,
                  const float (&values)[elements]) const {
    std::copy_n(values, elements, data + (b * tokens + t) * width + f);
  }
};

// The grids of hydra.cu, rows in pieces of `elements`.
template <int elements>
struct HostGrid {
  cuda::HydraShape shape = {};
  testing_inputs::HostBlock block = {};
  static constexpr int parts = 19; // added in two steps

  static at::Tensor filled(const at::IntArrayRef sizes) { return at::full(sizes, NAN, at::kFloat); }
  template <typename Program>
  void over_slices(const Program& program) const {
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (int slice = 0; slice < shape.slices(elements); ++slice) program(cuda::HydraSlice{b, slice});
  }
  template <typename Program>
  void over_rows(const Program& program) const {
    constexpr int rows = cuda::rows_of_block * cuda::rows_of_warp;
    over_slices([&](const cuda::HydraSlice& of) {
      for (std::int64_t index = 0; index * rows < shape.tokens; ++index) program(of, index);
    });
  }
  at::Tensor sums(const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor partial = filled({parts * cuda::slice_width(elements)}),
                     sums = filled({shape.batch * shape.width});
    std::vector<float> shared(cuda::hydra_shared_floats(elements));
    over_slices([&](const cuda::HydraSlice& of) {
      unsigned counters[cuda::counters_of_slice] = {};
      for (int part = 0; part < parts; ++part)
        sums_of_rows(block, shape, of, part, parts, Read<elements>(x), Read<elements>(y), shared.data(),
                     partial.data_ptr<float>(), counters, sums.data_ptr<float>());
    });
    return sums;
  }
  at::Tensor gated(const at::Tensor& x, const at::Tensor& sums) {
    const at::Tensor out = filled(x.sizes());
    over_rows([&](const auto& of, const auto index) {
      gate(block, shape, of, index, Read<elements>(x), sums.const_data_ptr<float>(), Write<elements>(out));
    });
    return out;
  }
  // By x and by y.
  std::pair<at::Tensor, at::Tensor> by_rows(const at::Tensor& x, const at::Tensor& y,
                                            const at::Tensor& sums) {
    const at::Tensor by_x = filled(x.sizes()), by_y = filled(x.sizes());
    over_rows([&](const auto& of, const auto index) {
      through_norm(block, shape, of, index, Read<elements>(x), Read<elements>(y),
                   sums.const_data_ptr<float>(), Write<elements>(by_x), Write<elements>(by_y));
    });
    return {by_x, by_y};
  }
};

void expect_near(const at::Tensor& result, const at::Tensor& expected, const char* name) {
  const double difference = (result - expected).abs().max().item<double>();
  EXPECT_LE(difference, 2e-5 * expected.abs().max().item<double>() + 1e-6) << name; // NaN is not below it
}

template <int elements>
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
  HostGrid<elements> grid{
      {masked ? static_cast<const unsigned char*>(real.const_data_ptr()) : nullptr, batch, tokens, width}};
  const at::Tensor of_keys = grid.sums(k, v), of_queries = grid.sums(q, g);
  expect_near(grid.gated(q, of_keys), expected, "out");
  expect_near(grid.by_rows(q, g, of_keys).first, leaves[0].grad(), "by q");
  const auto [by_k, by_v] = grid.by_rows(k, v, of_queries);
  expect_near(by_k, leaves[1].grad(), "by k");
  expect_near(by_v, leaves[2].grad(), "by v");
}

TEST(CudaHydraPrograms, AreTheDefinitionAndItsGradients) {
  for (const bool masked : {false, true}) {
    compare<1>(masked ? 2 : 1, 1, masked);
    compare<1>(33, 7, masked);
    compare<4>(70, 300, masked);
    compare<1>(70, 1100, masked);
    compare<4>(70, 1100, masked);
  }
}

} // namespace
} // namespace hydrascope
