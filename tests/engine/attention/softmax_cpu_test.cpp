// The fused loops of softmax attention, for every kind of processor that this machine can be, against the
// definition in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/attention/softmax/cpu/softmax.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

using cpu::Element, cpu::Processor;
using testing_inputs::error_of, testing_inputs::every_third_masked, testing_inputs::head_of,
    testing_inputs::Sequence;

// softmax(q_i · k_j · scale) over the real keys, or those up to i, times v: of every query by its definition.
std::vector<std::vector<double>> expected_outputs(const Sequence& q, const Sequence& k, const Sequence& v,
                                                  const std::vector<unsigned char>& mask, const bool causal,
                                                  const double scale) {
  std::vector<std::vector<double>> all;
  for (std::int64_t i = 0; i < q.tokens; ++i) {
    const std::int64_t seen = causal ? i + 1 : q.tokens;
    std::vector<double> scores(static_cast<std::size_t>(q.tokens), -std::numeric_limits<double>::infinity());
    for (std::int64_t j = 0; j < seen; ++j) {
      if (mask[static_cast<std::size_t>(j)] == 0) continue;
      double product = 0;
      for (std::int64_t f = q.width; f < 2 * q.width; ++f) product += q.at(i, f) * k.at(j, f);
      scores[static_cast<std::size_t>(j)] = product * scale;
    }
    const double top = *std::ranges::max_element(scores);
    double total = 0;
    std::vector<double> out(static_cast<std::size_t>(q.width));
    for (std::int64_t j = 0; j < seen; ++j) {
      if (mask[static_cast<std::size_t>(j)] == 0) continue;
      const double weight = std::exp(scores[static_cast<std::size_t>(j)] - top);
      total += weight;
      for (std::int64_t f = 0; f < q.width; ++f)
        out[static_cast<std::size_t>(f)] += weight * v.at(j, q.width + f);
    }
    for (double& value : out) value = mask[static_cast<std::size_t>(i)] == 0 ? 0 : value / total;
    all.push_back(std::move(out));
  }
  return all;
}

double worst_error(const cpu::SoftmaxLoops& loops, const std::int64_t tokens, const std::int64_t width,
                   const Element element, const std::vector<unsigned char>& mask, const bool causal,
                   const float scale) {
  Sequence q(2, tokens, width, 0), k(2, tokens, width, 1), v(2, tokens, width, 2), out(2, tokens, width, 3);
  const auto expected = expected_outputs(q, k, v, mask, causal, static_cast<double>(scale));
  for (std::int64_t token = 0; token < tokens; ++token)
    if (mask[static_cast<std::size_t>(token)] == 0)
      for (Sequence* x : {&q, &k, &v})
        x->floats[static_cast<std::size_t>((tokens + token) * width)] =
            std::numeric_limits<float>::quiet_NaN();
  std::vector<float> buffers(static_cast<std::size_t>(cpu::softmax_buffer_floats(width, width)),
                             std::numeric_limits<float>::quiet_NaN());
  // In two ranges, as threads take them.
  const std::int64_t half = std::min(tokens / 2, cpu::queries_at_once);
  for (std::int64_t first = 0; first < tokens; first += std::max<std::int64_t>(1, half))
    loops.output(head_of(q, element), head_of(k, element), head_of(v, element), mask.data(),
                 {first, std::min(tokens, first + std::max<std::int64_t>(1, half))}, tokens, causal, scale,
                 buffers.data(), head_of(out, Element::float32));
  double worst = 0;
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t f = 0; f < width; ++f)
      worst = std::max(worst, error_of(out.at(i, width + f),
                                       expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(f)]));
  return worst;
}

TEST(SoftmaxLoops, OutputsAsDefinedOnEveryProcessor) {
  for (const auto& [tokens, width] : {std::pair<std::int64_t, std::int64_t>{1, 8},
                                      {5, 1},
                                      {37, 24},
                                      {255, 16},
                                      {257, 64},
                                      {600, 80}}) // more than two blocks of keys
    for (const bool masked : {false, true})
      for (const Element element : {Element::float32, Element::bfloat16})
        for (const Processor processor : cpu::processors()) {
          SCOPED_TRACE(std::string(cpu::name_of(processor)) + ", " + std::to_string(tokens) + " of " +
                       std::to_string(width) + (masked ? ", masked" : "") +
                       (element == Element::float32 ? "" : ", bfloat16"));
          const std::vector<unsigned char> mask =
              masked && tokens > 1 ? every_third_masked(tokens)
                                   : std::vector<unsigned char>(static_cast<std::size_t>(tokens), 1);
          const auto scale = static_cast<float>(0.3 / std::sqrt(static_cast<double>(width)));
          for (const bool causal : {false, true})
            EXPECT_LT(worst_error(cpu::softmax_loops(processor), tokens, width, element, mask, causal, scale),
                      cpu::has_bfloat16_products(processor) ? 0.02 : 1e-5)
                << (causal ? "causal" : "");
        }
}

// The largest score of each row lies in a later block of keys than the first: what was summed before shrinks.
TEST(SoftmaxLoops, ScoresOfAnySizeAreRelativeToTheLargest) {
  const std::vector<unsigned char> mask(600, 1);
  for (const Processor processor : cpu::processors()) {
    if (cpu::has_bfloat16_products(processor)) continue; // such scores have no digits in bfloat16
    for (const bool causal : {false, true})
      EXPECT_LT(worst_error(cpu::softmax_loops(processor), 600, 16, Element::float32, mask, causal, 30.0F),
                2e-3)
          << cpu::name_of(processor) << (causal ? ", causal" : "");
  }
}

} // namespace
} // namespace hydrascope
