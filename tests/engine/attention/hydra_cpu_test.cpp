// The fused loops of Hydra, for every kind of processor that this machine can be, against the definition in
// double precision; and the path that runs them against the composed one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "engine/attention/hydra/cpu/hydra.h"
#include "engine/attention/interface/kernel.h"
#include "tests/engine/attention/inputs.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

using cpu::Element, cpu::HydraLoops, cpu::RowMap, cpu::Rows;
using testing_inputs::Case, testing_inputs::describe, testing_inputs::every_third_masked,
    testing_inputs::make_input, testing_inputs::relative_error, testing_inputs::Sequence;

std::vector<std::pair<const char*, const HydraLoops*>> variants() {
  std::vector<std::pair<const char*, const HydraLoops*>> all;
  for (const cpu::Processor processor : cpu::processors())
    all.emplace_back(cpu::name_of(processor), &cpu::hydra_loops(processor));
  return all;
}

double mapped(RowMap map, const Sequence& x, std::int64_t token, std::int64_t feature, double scale) {
  double norm = 0;
  for (std::int64_t f = 0; f < x.heads * x.width; ++f)
    norm += map == RowMap::unit_l1 ? std::abs(x.at(token, f)) : x.at(token, f) * x.at(token, f);
  const double value = x.at(token, feature);
  switch (map) {
    case RowMap::scaled: return value * scale;
    case RowMap::unit_l2: return value / std::sqrt(norm);
    case RowMap::unit_l1: return value / norm;
    case RowMap::hyperbolic: return std::tanh(value);
    case RowMap::logistic: return 1 / (1 + std::exp(-value));
  }
  return 0;
}

constexpr std::int64_t tokens = 37;
constexpr float scale = 0.25F;

TEST(HydraLoops, SumAndGateAsDefinedOnEveryProcessor) {
  const std::vector<unsigned char> mask = every_third_masked(tokens);
  for (const auto& [heads, width] : {std::pair{1, 1}, {2, 5}, {3, 16}, {4, 24}, {1, 80}, {12, 64}})
    for (const Element element : {Element::float32, Element::bfloat16})
      for (const RowMap map :
           {RowMap::scaled, RowMap::unit_l2, RowMap::unit_l1, RowMap::hyperbolic, RowMap::logistic})
        for (const auto& [name, loops] : variants()) {
          SCOPED_TRACE(std::string(name) + ", " + std::to_string(heads) + " x " + std::to_string(width) +
                       ", map " + std::to_string(static_cast<int>(map)) +
                       (element == Element::float32 ? "" : ", bfloat16"));
          Sequence q(heads, tokens, width, 0), k(heads, tokens, width, 1), v(heads, tokens, width, 2);
          Sequence out(heads, tokens, width, 3);
          for (Sequence* x : {&k, &v})
            x->floats[0] = std::numeric_limits<float>::quiet_NaN(); // masked, with its token
          const std::int64_t features = std::int64_t{heads} * width, padded = cpu::padded_to_lanes(features);
          std::vector<float> buffers(static_cast<std::size_t>(2 * padded)),
              sum(static_cast<std::size_t>(padded));
          loops->sum(k.rows(element), v.rows(element), mask.data(), {0, tokens}, map, scale, buffers.data(),
                     sum.data());
          std::fill(buffers.begin(), buffers.end(), 0.0F);
          const Rows to = out.rows(Element::float32);
          loops->gate(q.rows(element), mask.data(), {0, tokens}, map, scale, sum.data(), to, false,
                      buffers.data());
          double worst = 0;
          for (std::int64_t f = 0; f < features; ++f) {
            double expected = 0;
            for (std::int64_t token = 0; token < tokens; ++token)
              if (mask[static_cast<std::size_t>(token)] != 0)
                expected += mapped(map, k, token, f, scale) * v.at(token, f);
            worst = std::max(worst, std::abs(sum[static_cast<std::size_t>(f)] - expected));
            for (std::int64_t token = 0; token < tokens; ++token) {
              const double gated = mask[static_cast<std::size_t>(token)] == 0
                                       ? 0
                                       : mapped(map, q, token, f, scale) * sum[static_cast<std::size_t>(f)];
              worst = std::max(worst, std::abs(out.at(token, f) - gated));
            }
          }
          EXPECT_LT(worst, 5e-5);
        }
}

TEST(HydraLoops, SoftmaxOverTokensAsDefinedOnEveryProcessor) {
  const std::vector<unsigned char> mask = every_third_masked(tokens);
  for (const auto& [name, loops] : variants()) {
    SCOPED_TRACE(name);
    Sequence k(2, tokens, 12, 1), v(2, tokens, 12, 2);
    for (float& x : k.floats) x *= 30; // e^90 alone would be infinite
    const std::int64_t padded = cpu::padded_to_lanes(24);
    const auto floats = [&](int rows, float value) {
      return std::vector<float>(static_cast<std::size_t>(rows * padded), value);
    };
    std::vector<float> buffers = floats(3, 0), total = floats(1, 0), weighted = floats(1, 0);
    std::vector<float> largest = floats(1, -std::numeric_limits<float>::infinity());
    // In two steps, the first without a real token.
    const cpu::TokenRange steps[] = {{0, 1}, {1, 20}, {20, tokens}};
    for (const cpu::TokenRange& range : steps)
      loops->softmax(k.rows(Element::float32), v.rows(Element::float32), mask.data(), range, buffers.data(),
                     largest.data(), total.data(), weighted.data());
    for (std::int64_t f = 0; f < 24; ++f) {
      double top = -INFINITY, sum = 0, all = 0;
      for (std::int64_t t = 0; t < tokens; ++t)
        if (mask[static_cast<std::size_t>(t)] != 0) top = std::max(top, k.at(t, f));
      for (std::int64_t t = 0; t < tokens; ++t) {
        if (mask[static_cast<std::size_t>(t)] == 0) continue;
        all += std::exp(k.at(t, f) - top);
        sum += std::exp(k.at(t, f) - top) * v.at(t, f);
      }
      const auto i = static_cast<std::size_t>(f);
      EXPECT_EQ(largest[i], static_cast<float>(top));
      EXPECT_NEAR(weighted[i] / total[i], sum / all, 1e-5);
    }
  }
}

TEST(HydraLoops, RoundToBfloat16ToTheNearestEven) {
  for (const auto& [name, loops] : variants()) {
    SCOPED_TRACE(name);
    // Halfway between two bfloat16 numbers, just above, NaN, infinite.
    std::vector<float> from = {1.00390625F,
                               1.01171875F,
                               1.004F,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -2.5F};
    const auto width = static_cast<std::int64_t>(from.size());
    std::vector<std::uint16_t> to(from.size());
    std::vector<float> ones(16, 1), buffers(32);
    loops->gate({.data = from.data(), .head_width = width, .token_stride = width, .head_stride = width},
                nullptr, {0, 1}, RowMap::scaled, 1, ones.data(),
                {.data = to.data(),
                 .element = Element::bfloat16,
                 .head_width = width,
                 .token_stride = width,
                 .head_stride = width},
                false, buffers.data());
    EXPECT_EQ(to[0], 0x3f80); // 1.0
    EXPECT_EQ(to[1], 0x3f82); // 1.015625
    EXPECT_EQ(to[2], 0x3f81);
    EXPECT_EQ(to[3] & 0x7fc0, 0x7fc0);
    EXPECT_EQ(to[4], 0x7f80);
    EXPECT_EQ(to[5], 0xc020);
  }
}

TEST(HydraCpu, RunsAndAgreesWithTheComposedPath) {
  for (const KernelInfo& info : kernel_infos()) {
    if (!info.implied_weights) continue;
    const auto kernel = make_kernel({info.name, {}});
    // The last does not fit the caches, so that results are written past them.
    for (const Case& shape : {Case{1, 1, 1, 1}, Case{2, 3, 65, 24, true}, Case{1, 12, 700, 64, true},
                              Case{1, 12, 2900, 64, true}}) {
      SCOPED_TRACE(info.name + " " + describe(shape));
      const AttentionInput input = make_input(shape, 3);
      AttentionInput exact = input; // in double precision there is the composed path alone
      for (at::Tensor* x : {&exact.q, &exact.k, &exact.v, &exact.layer_input})
        if (x->defined()) *x = x->to(at::kDouble);
      const AttentionOutput fused = kernel->run(input, {}), composed = kernel->run(exact, {});
      EXPECT_EQ(fused.path, "fused cpu");
      EXPECT_EQ(composed.path, "composed");
      EXPECT_LT(relative_error(fused.out.to(at::kDouble), composed.out), 1e-5);
    }
  }
}

} // namespace
} // namespace hydrascope
