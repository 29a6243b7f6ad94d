// The fused loops of causal linear attention and of cached softmax attention, for every kind of processor
// that this machine can be, against their definitions in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/attention/linear/cpu/linear.h"
#include "engine/attention/softmax/cpu/cache.h"
#include "tests/engine/attention/linear_definition.h"
#include "tests/engine/attention/sequence.h"

namespace hydrascope {
namespace {

using cpu::Element, cpu::LinearMap, cpu::PointMap;
using testing_inputs::defined_linear_attention, testing_inputs::DefinedOutput, testing_inputs::error_of,
    testing_inputs::every_third_masked, testing_inputs::head_of, testing_inputs::Sequence;

constexpr std::int64_t causal_tokens = 150; // blocks of 64, 64 and 22 tokens, or as below

// The largest error of the outputs of a head in steps of these lengths, and of the counted zeros.
double worst_causal_error(const cpu::Processor processor, const LinearMap& map, const std::int64_t width,
                          const Element element, const unsigned char* mask, const double scale,
                          const std::vector<std::int64_t>& steps) {
  Sequence q(2, causal_tokens, width, 0), k(2, causal_tokens, width, 1), v(2, causal_tokens, width, 2),
      out(2, causal_tokens, width, 3);
  for (Sequence* x : {&q, &k})
    for (float& value : x->floats) value = static_cast<float>(value * scale);
  if (mask != nullptr)
    for (Sequence* x : {&k, &v})
      x->floats[static_cast<std::size_t>(causal_tokens * width)] =
          std::numeric_limits<float>::quiet_NaN(); // masked, with its token
  cpu::KeySums sums(map, width);
  const std::vector<cpu::CausalQueries> queries{{head_of(q, element), map, head_of(out, Element::float32)}};
  std::int64_t zeros = 0, first = 0;
  for (const std::int64_t step : steps) {
    zeros += cpu::causal_outputs(head_of(k, element), head_of(v, element), queries, mask,
                                 {first, first + step}, map, sums, processor);
    first += step;
  }
  const DefinedOutput expected = defined_linear_attention(map, q, k, v, 1, mask, true);
  EXPECT_EQ(first, causal_tokens);
  EXPECT_EQ(zeros, expected.zero_denominators);
  double worst = 0;
  for (std::int64_t i = 0; i < causal_tokens; ++i)
    for (std::int64_t f = 0; f < width; ++f)
      worst = std::max(worst,
                       error_of(out.at(i, width + f), expected.out[static_cast<std::size_t>(i * width + f)]));
  return worst;
}

TEST(CausalLoops, OutputsAsDefinedOnEveryProcessor) {
  const std::vector<unsigned char> mask = every_third_masked(causal_tokens);
  std::vector<float> token_weights;
  for (std::int64_t token = 0; token < 2 * causal_tokens; ++token)
    token_weights.push_back(static_cast<float>(std::abs(std::sin(static_cast<double>(token)))));
  for (const std::int64_t width : {1, 5, 24, 64})
    for (const Element element : {Element::float32, Element::bfloat16})
      for (const PointMap point :
           {PointMap::plus_minus_exponential, PointMap::exponential, PointMap::softmax,
            PointMap::plus_minus_softmax, PointMap::joint_softmax, PointMap::one_plus_elu, PointMap::relu,
            PointMap::relu_token_weighted, PointMap::unit, PointMap::taylor})
        for (const cpu::Processor processor : cpu::processors()) {
          SCOPED_TRACE(std::string(cpu::name_of(processor)) + ", " + std::to_string(width) + ", map " +
                       std::to_string(static_cast<int>(point)) +
                       (element == Element::float32 ? "" : ", bfloat16"));
          LinearMap map{.map = point, .head_width = width, .outputs = width, .scale = 0.5F};
          map.normalised = point != PointMap::unit; // its weights are of both signs
          map.token_weights = token_weights.data();
          // Products with the sums are of bfloat16 numbers where the loops have them.
          const bool rounds = cpu::has_bfloat16_products(processor);
          const double tolerance = map.normalised ? (rounds ? 0.04 : 3e-5) : (rounds ? 0.6 : 3.5e-4);
          EXPECT_LT(worst_causal_error(processor, map, width, element, nullptr, 1, {causal_tokens}),
                    tolerance);
          EXPECT_LT(worst_causal_error(processor, map, width, element, mask.data(), 1, {1, 3, 70, 64, 12}),
                    tolerance);
        }
}

// Log-features that grow by hundreds within a block are no longer divided by one number.
TEST(CausalLoops, AreExactWhateverTheRange) {
  const LinearMap map{.map = PointMap::plus_minus_exponential, .head_width = 24, .outputs = 24};
  for (const cpu::Processor processor : cpu::processors()) {
    if (cpu::has_bfloat16_products(processor)) continue;
    SCOPED_TRACE(cpu::name_of(processor));
    // e^(q + k) is finite in double precision.
    for (const double scale : {1.0, 20.0, 100.0})
      EXPECT_LT(worst_causal_error(processor, map, 24, Element::float32, nullptr, scale, {causal_tokens}),
                2e-4);
  }
}

TEST(CacheLoops, AttendAsDefinedOnEveryProcessor) {
  for (const std::int64_t width : {1, 5, 16, 64, 80})
    for (const std::int64_t group : {1, 3, 4, 7})
      for (const std::int64_t count : {1, 40, 64, 200})
        for (const Element element : {Element::float32, Element::bfloat16})
          for (const cpu::Processor processor : cpu::processors()) {
            SCOPED_TRACE(std::string(cpu::name_of(processor)) + ", " + std::to_string(width) + ", group " +
                         std::to_string(group) + ", " + std::to_string(count) + " tokens");
            Sequence q(1, group, width, 0), k(1, count, width, 1), v(1, count, width, 2);
            const std::int64_t padded = cpu::padded_to_lanes(width), tile = cpu::tokens_of_block;
            const std::int64_t slots = (count + tile - 1) / tile * tile;
            // In the cache's layout, as floats and as bfloat16.
            std::vector<float> keys(static_cast<std::size_t>(slots * width)),
                values(static_cast<std::size_t>(slots * padded));
            std::vector<std::uint16_t> half_keys(keys.size()), half_values(values.size());
            for (std::int64_t token = 0; token < count; ++token)
              for (std::int64_t f = 0; f < width; ++f) {
                const auto from = static_cast<std::size_t>(token * width + f);
                const auto key = static_cast<std::size_t>((token / tile * width + f) * tile + token % tile);
                const auto value = static_cast<std::size_t>(token * padded + f);
                keys[key] = k.floats[from];
                half_keys[key] = k.halves[from];
                values[value] = v.floats[from];
                half_values[value] = v.halves[from];
              }
            const bool half = element == Element::bfloat16;
            const cpu::CachedHead head{half ? static_cast<const void*>(half_keys.data()) : keys.data(),
                                       half ? static_cast<const void*>(half_values.data()) : values.data(),
                                       element, width};
            const auto floats = [](const std::int64_t size) {
              return std::vector<float>(static_cast<std::size_t>(size),
                                        std::numeric_limits<float>::quiet_NaN());
            };
            std::vector<float> buffers = floats(group * cpu::cached_tokens_at_once), largest = floats(group),
                               totals = floats(group), sums = floats(group * padded);
            cpu::cache_loops(processor).part(q.floats.data(), group, head, {0, count}, buffers.data(),
                                             largest.data(), totals.data(), sums.data());
            double worst = 0;
            for (std::int64_t g = 0; g < group; ++g) {
              std::vector<double> scores;
              for (std::int64_t token = 0; token < count; ++token) {
                double score = 0;
                for (std::int64_t f = 0; f < width; ++f) score += q.at(g, f) * k.at(token, f);
                scores.push_back(score);
              }
              const double top = *std::ranges::max_element(scores);
              double total = 0;
              std::vector<double> sum(static_cast<std::size_t>(width));
              for (std::int64_t token = 0; token < count; ++token) {
                const double weight = std::exp(scores[static_cast<std::size_t>(token)] - top);
                total += weight;
                for (std::int64_t f = 0; f < width; ++f)
                  sum[static_cast<std::size_t>(f)] += weight * v.at(token, f);
              }
              for (std::int64_t f = 0; f < width; ++f)
                worst = std::max(
                    worst, error_of(static_cast<double>(sums[static_cast<std::size_t>(g * padded + f)]) /
                                        static_cast<double>(totals[static_cast<std::size_t>(g)]),
                                    sum[static_cast<std::size_t>(f)] / total));
            }
            EXPECT_LT(worst, 1e-4);
          }
}

} // namespace
} // namespace hydrascope
