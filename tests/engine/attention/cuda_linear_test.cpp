// The programs that the GPU's blocks run for linear attention, run on the host thread by thread, against the
// definition in double precision. What differs on a GPU, launches and tensor cores, Cuda.* tests where there
// is one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/attention/cuda_linear_grid.h"
#include "tests/engine/attention/linear_definition.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

using cpu::PointMap;
using testing_inputs::CudaLinearGrid, testing_inputs::defined_linear_attention, testing_inputs::DefinedOutput,
    testing_inputs::every_third_masked, testing_inputs::Sequence;

struct Case {
  std::int64_t tokens;
  int width, outputs;
};

constexpr std::int64_t heads = 2;

// W (H,d,m) and b (H,m).
std::vector<float> drawn(const std::int64_t count, const double phase, const double size) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(size * std::sin(31.0 * static_cast<double>(i) + phase)));
  return values;
}

// Rows of W of one head as LinearMap holds them.
std::vector<float> padded_rows(const float* from, const std::int64_t rows, const std::int64_t columns) {
  const std::int64_t stride = cpu::padded_to_lanes(columns);
  std::vector<float> result(static_cast<std::size_t>(cpu::padded_to_lanes(rows) * stride));
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(from + i * columns, columns, result.begin() + i * stride);
  return result;
}

void compare(const Case& one, const PointMap point, const bool projects, const bool masked) {
  SCOPED_TRACE(std::to_string(one.tokens) + " tokens, " + std::to_string(one.width) + " to " +
               std::to_string(one.outputs) + ", map " + std::to_string(static_cast<int>(point)) +
               (projects ? ", projected" : "") + (masked ? ", masked" : ""));
  const std::int64_t tokens = one.tokens;
  Sequence q(heads, tokens, one.width, 0), k(heads, tokens, one.width, 1), v(heads, tokens, one.width, 2);
  const std::vector<unsigned char> mask = every_third_masked(tokens);
  if (masked)
    for (Sequence* x : {&q, &k, &v}) x->floats.front() = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> token_weights = drawn(2 * tokens, 0, 1);
  for (float& turn : token_weights) turn = std::abs(turn);
  const std::vector<float> weight =
      drawn(heads * one.width * one.outputs, 1, 1 / (3 * std::sqrt(static_cast<double>(one.width))));
  const std::vector<float> bias = drawn(heads * one.outputs, 2, 0.1);
  const bool normalised = point != PointMap::unit;
  constexpr float scale = 0.5F, half_square = 0.01F;

  cuda::SideArguments side{};
  side.token_weights = token_weights.data();
  side.scale = scale;
  side.half_square = half_square;
  if (projects) {
    side.weight = weight.data();
    side.weight_stride = static_cast<std::int64_t>(one.width) * one.outputs;
    side.bias = bias.data();
  }
  const auto on_device = [&](Sequence& x) {
    return cuda::HeadsOnDevice{x.floats.data(), heads * tokens * one.width, tokens * one.width, one.width};
  };
  std::vector<float> out(static_cast<std::size_t>(tokens * heads * one.width)), workspace;
  cuda::LinearArguments arguments{};
  arguments.map = point;
  arguments.normalised = normalised;
  arguments.q = on_device(q);
  arguments.k = on_device(k);
  arguments.v = on_device(v);
  arguments.query = arguments.key = side;
  arguments.mask = masked ? mask.data() : nullptr;
  arguments.out = out.data();
  arguments.batch = 1;
  arguments.heads = heads;
  arguments.tokens = tokens;
  arguments.head_width = arguments.inputs = one.width;
  arguments.outputs = one.outputs;
  arguments.features = cuda::features_of(point, one.outputs);
  workspace.assign(static_cast<std::size_t>(cuda::counter_floats + heads * head_space_floats(arguments)),
                   std::numeric_limits<float>::quiet_NaN());
  arguments.workspace = workspace.data();
  const int zeros = CudaLinearGrid(arguments).run();

  std::int64_t expected_zeros = 0;
  double worst = 0, largest = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    cpu::LinearMap map{.map = point, .head_width = one.width, .outputs = one.outputs, .scale = scale};
    map.half_square = half_square;
    map.normalised = normalised;
    map.token_weights = token_weights.data();
    const auto own_weight = padded_rows(weight.data() + h * one.width * one.outputs, one.width, one.outputs),
               own_bias = padded_rows(bias.data() + h * one.outputs, 1, one.outputs);
    if (projects) {
      map.weight = own_weight.data();
      map.bias = own_bias.data();
    }
    const DefinedOutput expected = defined_linear_attention(map, q, k, v, h, masked ? mask.data() : nullptr);
    expected_zeros += expected.zero_denominators;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (int c = 0; c < one.width; ++c) {
        const double value = expected.out[static_cast<std::size_t>(t * one.width + c)];
        worst = std::max(
            worst, std::abs(value - static_cast<double>(
                                        out[static_cast<std::size_t>((t * heads + h) * one.width + c)])));
        largest = std::max(largest, std::abs(value));
      }
  }
  EXPECT_LE(worst, 1e-5 * largest); // measured: 3.2e-6
  EXPECT_EQ(zeros, expected_zeros);
}

TEST(CudaLinearPrograms, GiveTheDefinitionsOutput) {
  for (const Case& one : {Case{1, 1, 1}, Case{33, 8, 8}, Case{300, 20, 20}, Case{70, 16, 7}, Case{40, 64, 64},
                          Case{37, 128, 128}, Case{35, 24, 40}})
    for (const PointMap point :
         {PointMap::plus_minus_exponential, PointMap::exponential, PointMap::softmax,
          PointMap::plus_minus_softmax, PointMap::joint_softmax, PointMap::one_plus_elu, PointMap::relu,
          PointMap::unit, PointMap::relu_token_weighted})
      for (const bool projects : {false, true})
        for (const bool masked : {false, true})
          if (projects || one.width == one.outputs) compare(one, point, projects, masked);
}

} // namespace
} // namespace hydrascope
